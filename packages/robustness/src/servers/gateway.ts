// A gateway: the shipped program as a process of its own, killed, drained and started again behind
// addresses that stay the same. Each client has its own link to it.
import { createHash, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, FaultProxy, startChild, takePort } from "@palisade/testkit";

/** The shipped program. */
export const gatewayProgram = join(createRequire(import.meta.url).resolve("@palisade/gateway/package.json"), "..", "dist", "main.js");
const AGAIN_MS = 100;
const SLOW_START_MS = 20_000;
const READY_WITHIN_MS = 60_000;
/** What a process wrote before it ended is read a little after its end. */
const LAST_WORDS_MS = 50;

export interface Key {
  readonly id: string;
  readonly secret: string;
}

export function newKey(id: string): Key {
  return { id, secret: randomBytes(24).toString("base64url") };
}

interface GatewaySettings {
  readonly name: string;
  /** Beside the addresses and the level of its log. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * info, unless told. At info it chooses its ports and says where it listens; at error it does not
   * say so, and its ports are chosen here.
   */
  readonly logLevel?: "info" | "error";
  /** A module to load before the program, and what to do with its messages. */
  readonly probe?: { readonly module: string; readonly onMessage: (message: unknown) => void };
}

export class Gateway implements AsyncDisposable {
  readonly name: string;
  /** Starts that took very long, with the last words of the tries that failed. */
  readonly slowStarts: string[] = [];
  /** Set before the next start. */
  env: Readonly<Record<string, string>>;
  adminUrl = "";
  readonly #settings: GatewaySettings;
  readonly #links: FaultProxy[] = [];
  #child: Child | undefined;
  #upstream = { host: "127.0.0.1", port: 1 };

  constructor(settings: GatewaySettings) {
    this.#settings = settings;
    this.name = settings.name;
    this.env = settings.env;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * The first start, before there are faults: fails with the last words of the process if it ends,
   * or if it does not listen in time.
   */
  async start(): Promise<void> {
    if (await this.#startOnce(AbortSignal.timeout(READY_WITHIN_MS))) return;
    throw new Error(`${this.name} did not come up: ${await this.#lastWords()}`);
  }

  /** After a fault: repeated until it comes up, which needs its store, or until the signal. */
  async restart(signal: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    let refusal = "none failed";
    while (!signal.aborted) {
      if (await this.#startOnce(signal)) {
        const tookMs = performance.now() - startedAt;
        if (tookMs > SLOW_START_MS) this.slowStarts.push(`${this.name} took ${(tookMs / 1_000).toFixed(0)} s to come up (${refusal})`);
        return;
      }
      await sleep(AGAIN_MS);
      refusal = this.#child?.howItEnded() ?? refusal;
    }
    throw new Error(`${this.name} did not come up: ${refusal}`);
  }

  /** When it can serve: it reaches its store and its nodes. Fails if it ends. */
  async ready(): Promise<void> {
    for (const startedAt = performance.now(); ; await sleep(AGAIN_MS)) {
      if ((await askReady(this.adminUrl)) === "ready") return;
      if (this.#child?.exit !== undefined) throw new Error(await this.#lastWords());
      const waitedMs = performance.now() - startedAt;
      if (waitedMs > READY_WITHIN_MS)
        throw new Error(`${this.name} is not ready after ${waitedMs.toFixed(0)} ms: ${await this.#lastWords()}`);
    }
  }

  /** Rejects with the last words of the process that runs now when that ends; never resolves. */
  async ended(): Promise<never> {
    await this.#child?.waitForExit();
    throw new Error(await this.#lastWords());
  }

  /** One client's link to it. */
  async link(): Promise<{ readonly url: string; readonly proxy: FaultProxy }> {
    const proxy = await FaultProxy.start({ upstream: this.#upstream });
    this.#links.push(proxy);
    return { url: `http://${proxy.host}:${proxy.port}`, proxy };
  }

  async kill(): Promise<void> {
    await this.#child?.kill();
    await this.#down();
  }

  /** SIGTERM: it answers the requests that it has taken. */
  async drain(): Promise<void> {
    await this.#child?.stop({ graceMs: 3_000 });
    await this.#down();
  }

  pause(): void {
    this.#child?.signal("SIGSTOP");
  }

  resume(): void {
    this.#child?.signal("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child?.kill();
    await Promise.all(this.#links.map((link) => link.stop()));
  }

  /** Whether it listens; false if it has ended, or if the signal came first. */
  async #startOnce(signal: AbortSignal): Promise<boolean> {
    const { probe, logLevel = "info" } = this.#settings;
    const chosen = logLevel === "info" ? undefined : await chooseAddresses();
    let onLine = (_line: string): void => undefined;
    const said = new Promise<Addresses>((resolve) => {
      onLine = (line) => (/"msg":"listening"/.test(line) ? resolve(addressesIn(line)) : undefined);
    });
    const child = startChild({
      command: process.execPath,
      args: [...(probe === undefined ? [] : ["--import", probe.module]), gatewayProgram],
      env: {
        ...withoutGatewaySettings(),
        HOST: "127.0.0.1",
        PORT: chosen?.url.port ?? "0",
        ADMIN_PORT: chosen === undefined ? "0" : new URL(chosen.adminUrl).port,
        PALISADE_LOG_LEVEL: logLevel,
        ...this.env,
      },
      name: this.name,
      onLine: (line) => onLine(line),
      ...(probe === undefined ? {} : { onMessage: probe.onMessage }),
    });
    this.#child = child;
    const over = AbortSignal.any([signal, whenGone(child)]);
    const listening = chosen === undefined ? said : answering(chosen, over);
    const addresses = await Promise.race([listening, aborted(over)]);
    if (addresses === undefined) return false;
    this.adminUrl = addresses.adminUrl;
    this.#upstream = { host: addresses.url.hostname, port: Number(addresses.url.port) };
    await Promise.all(this.#links.map((link) => link.serverUp(this.#upstream)));
    return true;
  }

  async #lastWords(): Promise<string> {
    await sleep(LAST_WORDS_MS);
    return this.#child?.howItEnded() ?? `${this.name} was never started`;
  }

  async #down(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.serverDown()));
  }
}

interface Addresses {
  readonly url: URL;
  readonly adminUrl: string;
}

async function chooseAddresses(): Promise<Addresses> {
  const [port, adminPort] = [await takePort(), await takePort()];
  return { url: new URL(`http://127.0.0.1:${port}`), adminUrl: `http://127.0.0.1:${adminPort}` };
}

function addressesIn(line: string): Addresses {
  const { url, adminUrl } = JSON.parse(line) as { readonly url: string; readonly adminUrl: string };
  return { url: new URL(url), adminUrl };
}

async function askReady(adminUrl: string): Promise<"ready" | "not ready" | "no answer"> {
  try {
    const response = await fetch(`${adminUrl}/ready`);
    await response.arrayBuffer();
    return response.ok ? "ready" : "not ready";
  } catch {
    return "no answer";
  }
}

/** The addresses, as soon as there is any answer; undefined if the signal came first. */
async function answering(addresses: Addresses, signal: AbortSignal): Promise<Addresses | undefined> {
  for (; !signal.aborted; await sleep(AGAIN_MS)) if ((await askReady(addresses.adminUrl)) !== "no answer") return addresses;
  return undefined;
}

function whenGone(child: Child): AbortSignal {
  const gone = new AbortController();
  void child.waitForExit().then(() => gone.abort());
  return gone.signal;
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/** Settings of this process must not reach the gateway; an empty variable counts as absent. */
function withoutGatewaySettings(): Record<string, string> {
  const inherited = Object.keys(process.env).filter((name) => name.startsWith("PALISADE_") || name === "ADMIN_HOST");
  return Object.fromEntries(inherited.map((name) => [name, ""]));
}

export function keyring(keys: readonly Key[]): string {
  const entries = keys.map(({ id, secret }) => ({
    id,
    sha256: createHash("sha256").update(secret).digest("hex"),
    scopes: ["read:", "write:", "seal:"],
  }));
  return JSON.stringify(entries);
}

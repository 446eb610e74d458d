// A gateway: the shipped program as a process of its own, killed, drained and started again behind
// addresses that stay the same. Each client has its own link to it.
import { createHash, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, FaultProxy, startChild } from "@palisade/testkit";

const program = join(createRequire(import.meta.url).resolve("@palisade/gateway/package.json"), "..", "dist", "main.js");
const AGAIN_MS = 100;
const SLOW_START_MS = 20_000;
const READY_WITHIN_MS = 60_000;

export interface Key {
  readonly id: string;
  readonly secret: string;
}

export function newKey(id: string): Key {
  return { id, secret: randomBytes(24).toString("base64url") };
}

export interface GatewaySettings {
  readonly name: string;
  /** Beside the addresses, which the gateway chooses itself. */
  readonly env: Readonly<Record<string, string>>;
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

  /** Repeated until it comes up: for that it needs its store. */
  async start(signal?: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    let refusal = "none failed";
    while (signal?.aborted !== true) {
      const url = await this.#startOnce();
      if (url !== undefined) {
        const tookMs = performance.now() - startedAt;
        if (tookMs > SLOW_START_MS) this.slowStarts.push(`${this.name} took ${(tookMs / 1_000).toFixed(0)} s to come up (${refusal})`);
        this.#upstream = { host: url.hostname, port: Number(url.port) };
        await Promise.all(this.#links.map((link) => link.serverUp(this.#upstream)));
        return;
      }
      refusal = this.#child?.howItEnded() ?? refusal;
      await sleep(AGAIN_MS);
    }
    throw new Error(`${this.name} did not come up: ${refusal}`);
  }

  /** When it can serve: it reaches its store and its nodes. */
  async ready(): Promise<void> {
    for (const startedAt = performance.now(); ; await sleep(AGAIN_MS)) {
      const isReady = await fetch(`${this.adminUrl}/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isReady) return;
      const waitedMs = performance.now() - startedAt;
      if (waitedMs > READY_WITHIN_MS) throw new Error(`${this.name} is not ready after ${waitedMs.toFixed(0)} ms`);
    }
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

  async #startOnce(): Promise<URL | undefined> {
    const { probe } = this.#settings;
    let onListening = (_line: string): void => undefined;
    const listening = new Promise<string>((resolve) => {
      onListening = (line) => (/"msg":"listening"/.test(line) ? resolve(line) : undefined);
    });
    const child = startChild({
      command: process.execPath,
      args: [...(probe === undefined ? [] : ["--import", probe.module]), program],
      env: { ...withoutGatewaySettings(), HOST: "127.0.0.1", PORT: "0", ADMIN_PORT: "0", PALISADE_LOG_LEVEL: "info", ...this.env },
      name: this.name,
      onLine: (line) => onListening(line),
      ...(probe === undefined ? {} : { onMessage: probe.onMessage }),
    });
    this.#child = child;
    const line = await Promise.race([listening, child.waitForExit().then(() => undefined)]);
    if (line === undefined) return undefined;
    this.adminUrl = /"adminUrl":"([^"]+)"/.exec(line)?.[1] ?? "";
    const url = /"url":"([^"]+)"/.exec(line)?.[1];
    return url === undefined ? undefined : new URL(url);
  }

  async #down(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.serverDown()));
  }
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

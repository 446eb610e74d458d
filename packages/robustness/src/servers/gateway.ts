// A gateway: the shipped program as a process of its own, killed, drained and started again behind
// addresses that stay the same. Each client has its own link to it.
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { addressOf, FaultProxy, type Serving, startServing } from "@palisade/testkit";

const AGAIN_MS = 100;
const READY_WITHIN_MS = 60_000;
const DRAIN_MS = 3_000;

export interface Key {
  readonly id: string;
  readonly secret: string;
}

export function newKey(id: string): Key {
  return { id, secret: randomBytes(24).toString("base64url") };
}

export function keyring(keys: readonly Key[]): string {
  const sha256 = (secret: string): string => createHash("sha256").update(secret).digest("hex");
  return JSON.stringify(keys.map(({ id, secret }) => ({ id, sha256: sha256(secret), scopes: ["read:", "write:", "seal:"] })));
}

export class Gateway implements AsyncDisposable {
  readonly name: string;
  /** Set before the next start. */
  env: Readonly<Record<string, string>>;
  readonly #links: FaultProxy[] = [];
  #serving: Serving | undefined;
  #upstream = { host: "127.0.0.1", port: 1 };

  constructor(name: string, env: Readonly<Record<string, string>>) {
    this.name = name;
    this.env = env;
  }

  get adminUrl(): string {
    return this.#serving?.adminUrl ?? "";
  }

  /** Fails with the last words of the process if it ends before it listens. */
  async start(): Promise<void> {
    this.#serving = await startServing({ name: this.name, env: this.env });
    this.#upstream = addressOf(this.#serving.url);
    await Promise.all(this.#links.map((link) => link.serverUp(this.#upstream)));
  }

  /** After a fault: repeated until it comes up, which needs its store, or until the signal. */
  async restart(signal: AbortSignal): Promise<void> {
    const started = new AbortController();
    const given = once(signal, "abort", { signal: started.signal }).catch(() => undefined);
    let refusal = "it was given no time";
    while (!signal.aborted) {
      const starting = this.start().then(
        () => started.abort(),
        (error: Error) => {
          refusal = error.message;
        },
      );
      await Promise.race([starting, given]);
      if (started.signal.aborted) return;
      await sleep(AGAIN_MS);
    }
    throw new Error(`${this.name} did not come up: ${refusal}`);
  }

  /** When it can serve: it reaches its store and its nodes. Fails if it ends. */
  async ready(): Promise<void> {
    for (const startedAt = performance.now(); ; await sleep(AGAIN_MS)) {
      const answer = await fetch(`${this.adminUrl}/ready`).catch(noAnswer);
      await answer?.arrayBuffer();
      if (answer?.ok === true) return;
      if (this.#serving?.child.exit !== undefined) await this.ended();
      const waitedMs = performance.now() - startedAt;
      if (waitedMs > READY_WITHIN_MS) throw new Error(`${this.name} is not ready after ${waitedMs.toFixed(0)} ms`);
    }
  }

  /** Rejects with the last words of the process that runs now when that ends; never resolves. */
  async ended(): Promise<never> {
    const child = this.#serving?.child;
    await child?.waitForExit();
    throw new Error(child?.howItEnded() ?? `${this.name} was never started`);
  }

  /** One client's link to it. */
  async link(): Promise<{ readonly url: string; readonly proxy: FaultProxy }> {
    const proxy = await FaultProxy.start({ upstream: this.#upstream });
    this.#links.push(proxy);
    return { url: `http://${proxy.host}:${proxy.port}`, proxy };
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#serving?.child.signal(signal);
  }

  /** Killed, or drained by a SIGTERM: then it answers the requests that it has taken. */
  async end(isDrained: boolean): Promise<void> {
    await (isDrained ? this.#serving?.child.stop({ graceMs: DRAIN_MS }) : this.#serving?.child.kill());
    await Promise.all(this.#links.map((link) => link.serverDown()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#serving?.child.kill();
    await Promise.all(this.#links.map((link) => link.stop()));
  }
}

// It does not listen yet, or not any more.
function noAnswer(): undefined {}

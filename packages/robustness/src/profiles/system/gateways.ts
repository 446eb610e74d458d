// The gateways of a run: the program as a process of its own, killed, stopped and started again behind addresses that stay the same. Each client has its own way to each.
import { createHash, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, FaultProxy, startChild } from "@palisade/testkit";

const program = join(createRequire(import.meta.url).resolve("@palisade/gateway/package.json"), "..", "dist", "main.js");
const AGAIN_MS = 100;
const SLOW_MS = 20_000;

export interface Key {
  readonly id: string;
  readonly secret: string;
}

export function newKey(id: string): Key {
  return { id, secret: randomBytes(24).toString("base64url") };
}

export interface GatewayPlan {
  readonly name: string;
  readonly databaseUrl: string;
  readonly redisUrls: readonly string[];
  readonly keys: readonly Key[];
}

export class GatewayUnderFire implements AsyncDisposable {
  readonly name: string;
  durability: "sync" | "local" = "sync";
  /** Starts that took very long, with the last words of the tries that failed. */
  readonly slowStarts: string[] = [];
  readonly #plan: GatewayPlan;
  readonly #ways: FaultProxy[] = [];
  #child: Child | undefined;
  #upstream = { host: "127.0.0.1", port: 1 };

  constructor(plan: GatewayPlan) {
    this.#plan = plan;
    this.name = plan.name;
  }

  /** Comes up, however often that takes: it needs its store for that. */
  async start(signal?: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    let refusal = "none failed";
    while (signal?.aborted !== true) {
      const child = startChild({
        command: process.execPath,
        args: [program],
        env: this.#environment(),
        name: this.name,
        onLine: (line) => heard(line),
      });
      this.#child = child;
      let heard = (_line: string): void => undefined;
      const listening = new Promise<string>((resolve) => {
        heard = (line) => {
          const url = /"msg":"listening"/.test(line) ? /"url":"([^"]+)"/.exec(line)?.[1] : undefined;
          if (url !== undefined) resolve(url);
        };
      });
      const url = await Promise.race([listening, child.waitForExit().then(() => undefined)]);
      if (url !== undefined) {
        const tookMs = performance.now() - startedAt;
        if (tookMs > SLOW_MS) this.slowStarts.push(`${this.name} took ${(tookMs / 1_000).toFixed(0)} s to come up (${refusal})`);
        return this.#open(new URL(url));
      }
      refusal = child.howItEnded();
      await sleep(AGAIN_MS);
    }
    throw new Error(`${this.name} did not come up: ${refusal}`);
  }

  /** One client's way to it. */
  async anotherWay(): Promise<FaultProxy> {
    const way = await FaultProxy.start({ upstream: this.#upstream });
    this.#ways.push(way);
    return way;
  }

  async kill(): Promise<void> {
    await this.#child?.kill();
    await this.#close();
  }

  /** SIGTERM: it answers what it has taken. */
  async drain(): Promise<void> {
    await this.#child?.stop({ graceMs: 3_000 });
    await this.#close();
  }

  pause(): void {
    this.#child?.signal("SIGSTOP");
  }

  resume(): void {
    this.#child?.signal("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child?.kill();
    await Promise.all(this.#ways.map((way) => way.stop()));
  }

  async #open({ hostname, port }: URL): Promise<void> {
    this.#upstream = { host: hostname, port: Number(port) };
    await Promise.all(this.#ways.map((way) => way.serverUp(this.#upstream)));
  }

  async #close(): Promise<void> {
    await Promise.all(this.#ways.map((way) => way.serverDown()));
  }

  #environment(): Record<string, string> {
    const { databaseUrl, redisUrls, keys } = this.#plan;
    // What was set for other gateways must not reach this one; an empty variable counts as absent.
    const inherited = Object.keys(process.env).filter((name) => name.startsWith("PALISADE_") || name === "ADMIN_HOST");
    const entries = keys.map(({ id, secret }) => ({
      id,
      sha256: createHash("sha256").update(secret).digest("hex"),
      scopes: ["read:", "write:", "seal:"],
    }));
    return {
      ...Object.fromEntries(inherited.map((name) => [name, ""])),
      DATABASE_URL: databaseUrl,
      HOST: "127.0.0.1",
      PORT: "0",
      ADMIN_PORT: "0",
      PALISADE_REDIS_URLS: redisUrls.join(","),
      PALISADE_API_KEYS: JSON.stringify(entries),
      PALISADE_HISTORY: "on",
      PALISADE_DURABILITY: this.durability,
      PALISADE_WRITE_TIMEOUT_MS: "900",
      PALISADE_READ_TIMEOUT_MS: "900",
      PALISADE_CONNECT_TIMEOUT_MS: "400",
      PALISADE_MAX_WAIT_MS: "900",
      PALISADE_LOCK_WAIT_MS: "300",
      PALISADE_DRAIN_MS: "2000",
      PALISADE_LOG_LEVEL: "info",
    };
  }
}

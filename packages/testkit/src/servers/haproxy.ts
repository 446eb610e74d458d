// A real HAProxy with a configuration file of the user's, which takes its addresses from the
// environment.
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, startChild } from "../process/child.js";
import { returnPort, takePort } from "../process/port-block.js";
import type { FoundProgram } from "../resolve/distribution-program.js";

interface HaproxyOptions {
  /** A file that the server's account can read. */
  readonly configuration: string;
  /** The variable that says where it listens. */
  readonly listen: string;
  readonly env: Readonly<Record<string, string>>;
}

const READY_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

export class Haproxy implements AsyncDisposable {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #child: Child;

  private constructor(child: Child, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(program: FoundProgram, { configuration, listen, env }: HaproxyOptions): Promise<Haproxy> {
    const port = await takePort();
    const loader: Record<string, string> = program.libraryPath === "" ? {} : { LD_LIBRARY_PATH: program.libraryPath };
    const child = startChild({
      command: program.binary,
      args: ["-db", "-f", configuration],
      env: { ...loader, ...env, [listen]: `127.0.0.1:${port}` },
      name: "haproxy",
      cwd: "/",
      ...program.account,
    });
    const started = new Haproxy(child, port);
    // It listens whether it knows a primary or not.
    for (const giveUpAt = performance.now() + READY_TIMEOUT_MS; !(await accepts(port)); await sleep(POLL_MS))
      if (!child.alive || performance.now() > giveUpAt) {
        await started.stop();
        throw new Error(`HAProxy did not start: ${child.howItEnded()}`);
      }
    return started;
  }

  async stop(): Promise<void> {
    await this.#child.kill();
    returnPort(this.port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

// A program of the distribution as a server of a test: on a port of its own, as an account that is not
// root, with files in a folder that this account can read.
import { once } from "node:events";
import { chmod, chown, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { scratchFolder } from "../process/orphans.js";
import { returnPort, takePort } from "../process/port-block.js";
import { type Child, startChild } from "../process/program.js";
import { libraryVariable, type Program } from "../programs/programs.js";

interface Start {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Looked at again and again: whether it serves. */
  readonly isReady: (child: Child) => Promise<boolean>;
}

const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 20;

/** Fails with its last words if it ends, or does not serve in time. */
export async function startProgram(program: Program, { name, args, env = {}, isReady }: Start): Promise<Child> {
  const child = startChild({
    command: program.binary,
    args,
    env: { ...libraryVariable(program), ...env },
    name,
    cwd: "/",
    ...program.account,
  });
  for (const giveUpAt = performance.now() + READY_TIMEOUT_MS; !(await isReady(child)); await sleep(POLL_MS)) {
    if (child.alive && performance.now() < giveUpAt) continue;
    await child.kill();
    throw new Error(`${name} did not start: ${child.howItEnded()}`);
  }
  return child;
}

interface Place {
  readonly folder: string;
  readonly port: number;
}

/** One that reads files. */
export class ServerProgram implements AsyncDisposable {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #folder: string;
  readonly #child: Child;

  protected constructor({ folder, port }: Place, child: Child) {
    this.#folder = folder;
    this.port = port;
    this.#child = child;
  }

  /** A place with files by their names, and the child that serves there. */
  protected static async launch(
    program: Program,
    files: (place: Place) => Readonly<Record<string, string>>,
    start: (place: Place) => Start,
  ): Promise<[Place, Child]> {
    const place = { folder: scratchFolder("program", "/tmp"), port: await takePort() };
    const { account } = program;
    await chmod(place.folder, 0o711);
    if (account !== undefined) await chown(place.folder, account.uid, account.gid);
    for (const [name, text] of Object.entries(files(place))) {
      const file = join(place.folder, name);
      await writeFile(file, text, { mode: 0o600 });
      if (account !== undefined) await chown(file, account.uid, account.gid);
    }
    return [place, await startProgram(program, start(place))];
  }

  async stop(): Promise<void> {
    await this.#child.kill();
    returnPort(this.port);
    await rm(this.#folder, { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

/** Whether a GET is answered with 200. */
export async function isOk(url: string): Promise<boolean> {
  return await fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

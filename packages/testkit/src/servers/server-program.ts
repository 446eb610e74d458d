// A program of the distribution as a server of a test: on a port of its own, as an account that is not
// root, with files that this account can read.
import { once } from "node:events";
import { chmod, chown } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
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

/** Its account may enter the folder and has the files. */
export async function handOver({ account }: Pick<Program, "account">, folder: string, files: readonly string[]): Promise<void> {
  await chmod(folder, 0o711);
  if (account !== undefined) for (const file of files) await chown(file, account.uid, account.gid);
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

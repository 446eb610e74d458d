// A program of its own process that owns servers or children, for tests about what it leaves behind. Whatever becomes of the test, no owner outlives its file.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

export interface OwnerSpec {
  /** The name of a compiled program, below the tests of this package: "unit/process-orphans". */
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const owners = new Set<ChildProcess>();

afterAll(() => {
  for (const owner of owners) owner.kill("SIGKILL"); // An owner with its output open would keep the whole run from ending.
});

/** Starts it and reads the first line it prints, which is JSON about what it owns. */
export async function startOwner<Owned>({ program, args, env }: OwnerSpec): Promise<{ owner: ChildProcess; owned: Owned }> {
  const path = fileURLToPath(new URL(`../../.build/test/${program}.program.js`, import.meta.url));
  const owner = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  owners.add(owner);
  owner.once("exit", () => owners.delete(owner));
  const [line] = await Promise.race([once(createInterface(owner.stdout), "line"), once(owner, "exit")]);
  if (typeof line !== "string") throw new Error(`${program} ended before it said what it owns, with ${line}`);
  return { owner, owned: JSON.parse(line) as Owned };
}

/** Answers how it ended: with this code, or by this signal. */
export async function ended(owner: ChildProcess): Promise<number | NodeJS.Signals | null> {
  const [code, signal] = (await once(owner, "exit")) as [number | null, NodeJS.Signals | null];
  return code ?? signal;
}

export async function endOwner(owner: ChildProcess, signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
  owner.kill(signal);
  return ended(owner);
}

// A program that dies takes along what it started, however it dies: processes, and their folders.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { processState } from "../../src/process/process-tree.js";

const program = fileURLToPath(new URL("../../.build/test/real/orphans.program.js", import.meta.url));
const patient = { timeout: 10_000 };
const owners = new Set<ChildProcess>();

// Whatever becomes of a test: an owner with its output open would keep the whole run from ending.
afterAll(() => {
  for (const owner of owners) owner.kill("SIGKILL");
});

async function startOwner(owned: string, ending = "idle", env: Readonly<Record<string, string>> = {}) {
  const owner = spawn(process.execPath, [program, owned, ending], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  owners.add(owner);
  const ended = once(owner, "exit").then(([code, signal]) => code ?? signal);
  const [line] = await once(createInterface(owner.stdout), "line");
  return { owner, ended, ...(JSON.parse(line) as { pids: number[]; folders: string[] }) };
}

/** A zombie is gone. */
function isAlive(pid: number): boolean {
  if (process.platform === "linux") return !["Z", "X", undefined].includes(processState(pid)?.state);
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function untilGone({ pids, folders }: { readonly pids: readonly number[]; readonly folders: readonly string[] }): Promise<void> {
  await vi.waitFor(() => {
    expect([...pids.filter(isAlive), ...folders.filter(existsSync)]).toEqual([]);
  }, patient);
}

describe.concurrent.each([
  ["children", 2],
  ["fleet", 3],
  ["postgres", 5],
  ["paused postgres", 5],
])("the owner of %s", (owned, least) => {
  test.each(["SIGKILL", "SIGTERM"] as const)("ended by %s leaves no process and no folder", async (signal) => {
    const { owner, ended, ...its } = await startOwner(owned);
    expect(its.pids.length).toBeGreaterThanOrEqual(least);
    expect(its.folders.every(existsSync)).toBe(true);
    owner.kill(signal);
    expect(await ended).toBe(signal);
    await untilGone(its);
  });
});

test.each(["exit", "end"])("an owner that comes to its %s leaves none, and is not kept alive by one", async (ending) => {
  const { ended, ...its } = await startOwner("children", ending);
  expect(await ended).toBe(0);
  await untilGone(its);
});

test("data that has to be durable lies in the temporary folder, whatever that is called", async () => {
  const folder = await mkdtemp(join(tmpdir(), "palisade with spaces "));
  onTestFinished(() => rm(folder, { recursive: true }));
  await chmod(folder, 0o755); // The account that runs the servers of root must be able to enter.
  const { owner, ...its } = await startOwner("durable postgres", "idle", { TMPDIR: folder });
  expect(its.folders[0]?.startsWith(folder)).toBe(true);
  owner.kill("SIGKILL");
  await untilGone(its);
});

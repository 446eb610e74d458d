// A program that dies takes along what it started, however it dies: processes, and their folders.
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { isRunning } from "../../src/process/process-tree.js";
import { type Child, startNode } from "../../src/process/program.js";

const program = fileURLToPath(new URL("../../.build/test/real/orphans.program.js", import.meta.url));
const patient = { timeout: 30_000 };
const owners: Child[] = [];

afterAll(async () => void (await Promise.all(owners.map((owner) => owner.kill()))));

/** With what it owns; fails at once with its last words if it cannot start. */
async function startOwner(owned: string, ending = "idle", env: Readonly<Record<string, string>> = {}) {
  const owner = startNode(program, [owned, ending], { name: `the owner of ${owned}`, env });
  owners.push(owner);
  const [line] = await owner.says(/^{.*}$/);
  return { owner, ...(JSON.parse(line) as { pids: number[]; folders: string[] }) };
}

async function untilGone({ pids, folders }: { readonly pids: readonly number[]; readonly folders: readonly string[] }): Promise<void> {
  await vi.waitFor(() => {
    expect([...pids.filter(isRunning), ...folders.filter(existsSync)]).toEqual([]);
  }, patient);
}

describe.concurrent.each([
  ["children", 2],
  ["fleet", 3],
  ["postgres", 5],
  ["paused postgres", 5],
])("the owner of %s", (owned, least) => {
  test.each(["SIGKILL", "SIGTERM"] as const)("ended by %s leaves no process and no folder", async (signal) => {
    const { owner, ...its } = await startOwner(owned);
    expect(its.pids.length).toBeGreaterThanOrEqual(least);
    expect(its.folders.every(existsSync)).toBe(true);
    owner.signal(signal);
    expect(await owner.waitForExit()).toEqual({ code: null, signal });
    await untilGone(its);
  });
});

test.each(["exit", "end"])("an owner that comes to its %s leaves none, and is not kept alive by one", async (ending) => {
  const { owner, ...its } = await startOwner("children", ending);
  expect(await owner.waitForExit()).toEqual({ code: 0, signal: null });
  await untilGone(its);
});

test("data that has to be durable lies in the temporary folder, whatever that is called", async () => {
  const folder = await mkdtemp(join(tmpdir(), "palisade with spaces "));
  onTestFinished(() => rm(folder, { recursive: true }));
  await chmod(folder, 0o755); // The account that runs the servers of root must be able to enter.
  const { owner, ...its } = await startOwner("durable postgres", "idle", { TMPDIR: folder });
  expect(its.folders[0]?.startsWith(folder)).toBe(true);
  owner.signal("SIGKILL");
  await untilGone(its);
});

test("an owner that cannot start is told at once, with its last words", async () => {
  await expect(startOwner("fleet", "idle", { REDIS_SERVER_BIN: "/no/such/server" })).rejects.toThrow(
    /^the owner of fleet exited with 1; its last lines:\n[\s\S]*REDIS_SERVER_BIN names /,
  );
});

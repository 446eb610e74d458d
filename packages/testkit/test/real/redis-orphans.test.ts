// A program that dies with a fleet running takes the fleet along, however it dies.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { untilGone } from "../unit/process-gone.js";

const patient = { timeout: 10_000 };

const program = fileURLToPath(new URL("../../.build/test/real/redis-orphans.program.js", import.meta.url));

async function fleetOwner(mode: string): Promise<{ owner: ReturnType<typeof spawn>; pids: number[]; folders: string[] }> {
  const owner = spawn(process.execPath, [program, mode], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(createInterface(owner.stdout), "line")) as [string];
  return { owner, ...(JSON.parse(line) as { pids: number[]; folders: string[] }) };
}

test("kill -9 of the owner leaves no server, not even a paused one, and its folders go when the next owner starts", async () => {
  const { owner, pids, folders } = await fleetOwner("idle");
  owner.kill("SIGKILL");
  await once(owner, "exit");
  await untilGone(pids);
  const next = await fleetOwner("stop");
  next.owner.kill("SIGTERM");
  await once(next.owner, "exit");
  // Another test's process may sweep at the same moment, and have it half done when we look.
  await expect.poll(() => folders.some(existsSync), patient).toBe(false);
});

test("SIGTERM leaves neither servers nor folders", async () => {
  const { owner, pids, folders } = await fleetOwner("idle");
  owner.kill("SIGTERM");
  await once(owner, "exit");
  await untilGone(pids);
  expect(folders.some(existsSync)).toBe(false);
});

test("an owner that handles the signal itself may stop its fleet in its own order", async () => {
  const { owner, pids, folders } = await fleetOwner("stop");
  owner.kill("SIGTERM");
  const [code] = (await once(owner, "exit")) as [number | null];
  expect(code).toBe(0);
  await untilGone(pids);
  expect(folders.some(existsSync)).toBe(false);
});

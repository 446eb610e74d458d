// A program that dies with a fleet running takes the fleet along, however it dies.
import { existsSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { endOwner, endOwners, startOwner, untilGone } from "../unit/owner.js";

const patient = { timeout: 10_000 };

afterAll(endOwners);

async function fleetOwner(mode: "idle" | "stop") {
  const { owner, owned } = await startOwner<{ pids: number[]; folders: string[] }>({ program: "real/redis-orphans", args: [mode] });
  return { owner, ...owned };
}

test("kill -9 of the owner leaves no server, not even a paused one, and its folders go when the next owner starts", async () => {
  const { owner, pids, folders } = await fleetOwner("idle");
  await endOwner(owner, "SIGKILL");
  await untilGone(pids);
  const next = await fleetOwner("stop");
  await endOwner(next.owner, "SIGTERM");
  // Another test's process may sweep at the same moment, and have it half done when we look.
  await expect.poll(() => folders.some(existsSync), patient).toBe(false);
});

test("SIGTERM leaves neither servers nor folders", async () => {
  const { owner, pids, folders } = await fleetOwner("idle");
  await endOwner(owner, "SIGTERM");
  await untilGone(pids);
  expect(folders.some(existsSync)).toBe(false);
});

test("an owner that handles the signal itself may stop its fleet in its own order", async () => {
  const { owner, pids, folders } = await fleetOwner("stop");
  expect(await endOwner(owner, "SIGTERM")).toBe(0);
  await untilGone(pids);
  expect(folders.some(existsSync)).toBe(false);
});

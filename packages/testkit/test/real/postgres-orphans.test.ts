// A program that dies with a Postgres server running takes it along, however it dies.
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@palisade/testkit/vitest";
import { onTestFinished } from "vitest";
import { endOwner, endOwners, startOwner, untilGone } from "../unit/owner.js";

afterAll(endOwners);

async function serverOwner(mode: "running" | "paused" | "durable", env: Readonly<Record<string, string>> = {}) {
  const { owner, owned } = await startOwner<{ pids: number[]; data: string }>({ program: "real/postgres-orphans", args: [mode], env });
  return { owner, ...owned };
}

describe("the end of the owner", () => {
  test("kill -9 leaves no process of the server", async () => {
    const { owner, pids } = await serverOwner("running");
    expect(pids.length).toBeGreaterThan(3);
    await endOwner(owner, "SIGKILL");
    await untilGone(pids);
  });

  test("kill -9 leaves no process of a paused server", async () => {
    const { owner, pids } = await serverOwner("paused");
    await endOwner(owner, "SIGKILL");
    await untilGone(pids);
  });

  test("SIGTERM leaves neither processes nor data", async () => {
    const { owner, pids, data } = await serverOwner("running");
    expect(existsSync(data)).toBe(true);
    await endOwner(owner, "SIGTERM");
    await untilGone(pids);
    expect(existsSync(data)).toBe(false);
  });
});

describe("the data", () => {
  test("it lies in the temporary folder when it has to be durable, whatever that folder is called", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palisade with spaces "));
    onTestFinished(() => rm(folder, { recursive: true }));
    await chmod(folder, 0o755); // The account that runs the servers of root must be able to enter.
    const { owner, pids, data } = await serverOwner("durable", { TMPDIR: folder });
    expect(data.startsWith(folder)).toBe(true);
    await endOwner(owner, "SIGTERM");
    await untilGone(pids);
    // Where the server's account cannot enter the clone, the cache of prepared files is there as
    // well, and stays for the next run.
    expect((await readdir(folder)).filter((name) => !name.startsWith("palisade-cache-"))).toEqual([]);
  });
});

// A program that dies with a Postgres server of this machine running takes it along, however it dies.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@palisade/testkit/vitest";
import { untilGone } from "../unit/process-gone.js";

const program = fileURLToPath(new URL("../../.build/test/real/postgres-orphans.program.js", import.meta.url));

interface Running {
  readonly owner: ChildProcess;
  readonly pids: readonly number[];
  readonly data: string;
}

async function serverOwner(mode: "running" | "paused" | "durable", env: Readonly<Record<string, string>> = {}): Promise<Running> {
  const owner = spawn(process.execPath, [program, mode], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  const [line] = await Promise.race([once(createInterface(owner.stdout), "line"), once(owner, "exit")]);
  if (typeof line !== "string") throw new Error(`the owner ended before it had a server, with ${line}`);
  return { owner, ...(JSON.parse(line) as Pick<Running, "pids" | "data">) };
}

async function end(owner: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  owner.kill(signal);
  await once(owner, "exit");
}

describe("the end of the owner", () => {
  test("kill -9 leaves no process of the server", async () => {
    const { owner, pids } = await serverOwner("running");
    expect(pids.length).toBeGreaterThan(3);
    await end(owner, "SIGKILL");
    await untilGone(pids);
  });

  test("kill -9 leaves no process of a paused server", async () => {
    const { owner, pids } = await serverOwner("paused");
    await end(owner, "SIGKILL");
    await untilGone(pids);
  });

  test("SIGTERM leaves neither processes nor data", async () => {
    const { owner, pids, data } = await serverOwner("running");
    expect(existsSync(data)).toBe(true);
    await end(owner, "SIGTERM");
    await untilGone(pids);
    expect(existsSync(data)).toBe(false);
  });
});

describe("the data", () => {
  test("it lies in the temporary folder when it has to be durable, whatever that folder is called", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palisade with spaces "));
    await chmod(folder, 0o755); // The account that runs the servers of root must be able to enter.
    const { owner, pids, data } = await serverOwner("durable", { TMPDIR: folder });
    expect(data.startsWith(folder)).toBe(true);
    await end(owner, "SIGTERM");
    await untilGone(pids);
    expect(await readdir(folder)).toEqual([]);
    await rm(folder, { recursive: true });
  });
});

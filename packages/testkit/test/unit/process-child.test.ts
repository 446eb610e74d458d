// A child is known while it lives, and its end can be explained.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startChild } from "../../src/process/child.js";
import { livingChildren } from "../../src/process/living-children.js";
import { untilGone } from "./process-gone.js";

const patient = { timeout: 10_000 };

const pids = (): number[] => livingChildren().map((child) => child.pid);

test("a child is among the living from its start to its end", async () => {
  const child = startChild({ command: "sleep", args: ["600"], name: "sleeper" });
  expect(pids()).toContain(child.pid);
  expect(child.alive).toBe(true);
  expect(await child.kill()).toEqual({ code: null, signal: "SIGKILL" });
  expect(pids()).not.toContain(child.pid);
  expect(child.howItEnded()).toBe("sleeper was ended by SIGKILL; it said nothing");
});

test("a kill takes along what the child has forked", async () => {
  const lines: string[] = [];
  let spoke = (): void => {};
  const said = new Promise<void>((resolve) => {
    spoke = resolve;
  });
  const child = startChild({ command: "sh", args: ["-c", "sleep 600 & echo $!; wait"], onLine: (line) => lines.push(line) && spoke() });
  await said;
  await child.kill();
  await untilGone([Number(lines[0])]);
});

test("its last lines are kept for the error that explains its end, and no more than those", async () => {
  const child = startChild({ command: "sh", args: ["-c", "seq 1 5000; echo cannot go on >&2; exit 3"], name: "counter" });
  await child.waitForExit();
  await expect.poll(() => child.lastLines(2), patient).toEqual(["5000", "cannot go on"]);
  expect(child.howItEnded()).toMatch(/^counter exited with 3; its last lines:\n/);
  expect(child.lastLines(10_000).length).toBeLessThanOrEqual(200);
});

test("output can go to a file, which is quoted in the same way", async () => {
  const folder = await mkdtemp(join(tmpdir(), "palisade-test-"));
  const logTo = join(folder, "logs", "server.log");
  const child = startChild({ command: "sh", args: ["-c", "echo one; echo two >&2"], logTo });
  await child.waitForExit();
  expect(child.lastLines()).toEqual(["one", "two"]);
  expect(await readFile(logTo, "utf8")).toBe("one\ntwo\n");
  await rm(folder, { recursive: true });
});

test("a command that is not there is an end that names it", async () => {
  const child = startChild({ command: "no-such-server" });
  // 127 is "not found"; 126 when a folder on PATH could not be searched.
  expect([126, 127]).toContain((await child.waitForExit()).code);
  await expect.poll(() => child.howItEnded(), patient).toMatch(/exited with 12[67]; [\s\S]*no-such-server/);
});

test("stop asks first, and kills what does not listen", async () => {
  const polite = startChild({ command: "sh", args: ["-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"] });
  await expect.poll(() => polite.lastLines(), patient).toEqual(["ready"]);
  expect(await polite.stop()).toEqual({ code: 7, signal: null });
  const deaf = startChild({ command: "sh", args: ["-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done"] });
  await expect.poll(() => deaf.lastLines(), patient).toEqual(["ready"]);
  expect(await deaf.stop({ graceMs: 30 })).toEqual({ code: null, signal: "SIGKILL" });
});

test("libraries meant for the child are not loaded by what starts it", async () => {
  const child = startChild({
    command: "sh",
    args: ["-c", "echo $LD_LIBRARY_PATH $PLAIN"],
    env: { LD_LIBRARY_PATH: "/of the child", PLAIN: "seen" },
  });
  await child.waitForExit();
  await expect.poll(() => child.lastLines(), patient).toEqual(["/of the child seen"]);
});

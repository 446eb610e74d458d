// A child is known while it lives, and its end can be explained.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { startChild } from "../../src/process/child.js";
import { livingChildren } from "../../src/process/orphans.js";
import { processState, scratchFolder } from "../../src/process/process-state.js";
import { untilGone } from "./owner.js";

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

test("a line is waited for, said before or later; an end without it is told with the last words", async () => {
  const child = startChild({ command: "sh", args: ["-c", "echo first 1; sleep 0.05; echo second 2; exit 3"], name: "speaker" });
  expect((await child.says(/^first (\d)/))[1]).toBe("1");
  expect((await child.says(/^second (\d)/))[1]).toBe("2");
  expect((await child.says(/^first (\d)/))[1]).toBe("1");
  await expect(child.says(/never/)).rejects.toThrow("speaker exited with 3; its last lines:\n  first 1\n  second 2");
  await expect(startChild({ command: "sleep", args: ["600"], name: "silent" }).says(/x/, 10)).rejects.toThrow(
    "silent was ended by SIGKILL",
  );
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

// Ports given out by processes on one machine never meet, whatever the dice say.
type Ports = typeof import("../../src/process/port-block.js");

/** As another process would have it: claims and free ports of its own. */
async function anotherTaker(): Promise<Ports> {
  vi.resetModules();
  return import("../../src/process/port-block.js");
}

async function take(ports: Ports, count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, () => ports.takePort()));
}

afterEach(() => {
  vi.restoreAllMocks();
});

test("takers that begin at the same block get different ports, also when one block is not enough", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const takers = [await anotherTaker(), await anotherTaker(), await anotherTaker()];
  const taken = await Promise.all(takers.map((taker) => take(taker, 60)));
  expect(new Set(taken.flat()).size).toBe(180);
});

test("a port that is given back is given out again, after all that were never used", async () => {
  const ports = await anotherTaker();
  const [first = 0] = await take(ports, 1);
  ports.returnPort(first);
  const next = await take(ports, 49);
  expect(next.indexOf(first)).toBe(48);
});

// What a killed process left is swept by the next one, also where its pid is used again.
test("a folder is swept unless the very process that made it still runs", async () => {
  const root = await mkdtemp(join(tmpdir(), "palisade-test-"));
  onTestFinished(() => rm(root, { recursive: true }));
  const made = (owner: string): string => join(root, `palisade-${hostname()}-${owner}-label-x`);
  const birth = processState(process.ppid)?.birth ?? "";
  const kept = [made(`${process.ppid}.${birth}`), join(root, `palisade-${hostname()}-other`), join(root, "other")];
  const swept = [made("4194305."), ...(birth === "" ? [] : [made(`${process.ppid}.1${birth}`)])];
  for (const folder of [...kept, ...swept]) await mkdir(folder);
  const own = scratchFolder("label", root);
  expect([...kept, own].filter((folder) => !existsSync(folder))).toEqual([]);
  expect(swept.filter((folder) => existsSync(folder))).toEqual([]);
});

// A child is known while it lives, its lines are heard, and its end can be explained.
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { livingChildren } from "../../src/process/orphans.js";
import { isRunning } from "../../src/process/process-tree.js";
import { AskedChild, startChild } from "../../src/process/program.js";

const pids = (): number[] => livingChildren().map((child) => child.pid);
const sh = (script: string, name = "sh") => startChild({ command: "sh", args: ["-c", script], name });

test("a child is among the living from its start to its end, and a kill takes along what it has forked", async () => {
  const child = sh("sleep 600 & echo $!; wait", "sleeper");
  expect(pids()).toContain(child.pid);
  const forked = Number((await child.says(/\d+/))[0]);
  expect(await child.kill()).toEqual({ code: null, signal: "SIGKILL" });
  expect(pids()).not.toContain(child.pid);
  await expect.poll(() => isRunning(forked)).toBe(false);
});

test("a line is waited for, said before or later; an end without it is told with the last words", async () => {
  const child = sh("seq 1 5000; echo first 1; sleep 0.05; echo second 2 >&2; exit 3", "speaker");
  expect((await child.says(/^first (\d)/))[1]).toBe("1");
  expect((await child.says(/^second (\d)/))[1]).toBe("2");
  expect((await child.says(/^first (\d)/))[1]).toBe("1");
  await expect(child.says(/never/)).rejects.toThrow(
    /^speaker exited with 3; its last lines:\n[\s\S]*\n {2}5000\n {2}first 1\n {2}second 2$/,
  );
  expect(child.lastLines(10_000).length).toBeLessThanOrEqual(200);
  await expect(startChild({ command: "sleep", args: ["600"], name: "silent" }).says(/x/, 10)).rejects.toThrow(
    "silent was ended by SIGKILL; it said nothing",
  );
});

test("a command that is not there is an error that names it", () => {
  expect(() => startChild({ command: "no-such-server" })).toThrow("no-such-server is missing or not executable");
});

test("stop asks first, and kills what does not listen", async () => {
  const polite = sh("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
  await polite.says(/ready/);
  expect(await polite.stop()).toEqual({ code: 7, signal: null });
  const deaf = sh("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  await deaf.says(/ready/);
  expect(await deaf.stop({ graceMs: 30 })).toEqual({ code: null, signal: "SIGKILL" });
});

test("a child that is asked answers each question, with its own error, and tells what it likes; killed, it owes no answer", async () => {
  const child = new AskedChild<number, string>(fileURLToPath(new URL("../../.build/test/unit/asked.program.js", import.meta.url)));
  const told = new Promise((resolve) => {
    child.onTold = resolve;
  });
  expect(await Promise.all([child.ask(2), child.ask(3)])).toEqual([4, 9]);
  await expect(child.ask(-1)).rejects.toMatchObject({ name: "RangeError", message: expect.stringContaining("no square of -1") });
  expect(await told).toBe("asked for 2");
  const waiting = child.ask(0);
  await child.kill();
  await expect(waiting).rejects.toThrow("was ended by SIGKILL");
});

// Ports given out by processes on one machine never meet, whatever the dice say.
afterEach(() => {
  vi.restoreAllMocks();
});

test("takers that begin at the same block get different ports, also when one block is not enough", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const taken: number[] = [];
  for (let taker = 0; taker < 3; taker += 1) {
    vi.resetModules(); // Claims and free ports of its own, as in another process.
    const { takePort } = await import("../../src/process/port-block.js");
    taken.push(...(await Promise.all(Array.from({ length: 60 }, () => takePort()))));
  }
  expect(new Set(taken).size).toBe(180);
});

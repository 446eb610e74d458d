// The program itself, briefly: with the fence nothing is found, without it updates are lost; what
// makes no sense is refused; and an interrupted run leaves no process behind.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Child, startChild } from "@palisade/testkit";
import { describe, expect, test } from "@palisade/testkit/vitest";

const program = join(createRequire(import.meta.url).resolve("@palisade/robustness/package.json"), "..", "dist", "main.js");

interface Run {
  readonly child: Child;
  readonly lines: readonly string[];
  /** In the environment of every process that was started by it, and by those. */
  readonly mark: string;
}

function start(...args: readonly string[]): Run {
  const lines: string[] = [];
  const mark = randomUUID();
  const env = { FAULTS_TEST_MARK: mark };
  const child = startChild({
    command: process.execPath,
    args: [program, ...args],
    env,
    name: "faults",
    onLine: (line) => lines.push(line),
  });
  return { child, lines, mark };
}

async function outcome(...args: readonly string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const { child, lines } = start(...args);
  const { code } = await child.waitForExit();
  return { code, text: lines.join("\n") };
}

/** The command lines of the processes with the mark. */
function livingWith(mark: string): readonly string[] {
  if (process.platform !== "linux")
    return execFileSync("ps", ["-axEww", "-o", "pid=,command="], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.includes(mark));
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const isMarked = readFileSync(join("/proc", pid, "environ"), "utf8").includes(mark);
      return isMarked ? [`${pid} ${readFileSync(join("/proc", pid, "cmdline"), "utf8").replaceAll("\0", " ")}`] : [];
    } catch {
      return []; // Gone meanwhile, or another user's.
    }
  });
}

/** Two clients, two intruders and two gateways run here, whatever runs the servers. */
const PROGRAMS = /traffic.worker\.js|gateway.dist.main\.js/;

/** Each takes ten seconds, three of them at once, and on a busy machine several times that. */
const PATIENCE_MS = 120_000;

describe("a run", { timeout: PATIENCE_MS }, () => {
  test.concurrent("G1 G3 with the fence loses no update, whatever breaks", async () => {
    const { code, text } = await outcome("--minutes", "0.06", "--clients", "4", "--seed", "test");
    expect(text).toMatch(/^No violation of T1, T2, L1, L2, G1, G2, G3, G4/m);
    expect(code).toBe(0);
  });

  test.concurrent("M1 T1 T2 L2 G1 nothing is broken while members are replaced, added and removed besides", async () => {
    const { code, text } = await outcome("--minutes", "0.15", "--clients", "2", "--seed", "test", "--members");
    expect(text).toMatch(/^No violation of T1, T2, L1, L2, G1, G2, G3, G4/m);
    expect(text).toMatch(/member (added|replaced) \d/);
    expect(code).toBe(0);
  });

  test.concurrent("G1 without the fence loses updates, as it should: this is the control", async () => {
    const { code, text } = await outcome("--minutes", "0.06", "--clients", "4", "--seed", "test", "--control");
    expect(text).toMatch(/violations, \d+ updates lost/);
    expect(code).toBe(0);
  });

  test.concurrent("T1 T2 L1 L2 of the lock alone breaks nothing, whatever breaks", async () => {
    const { code, text } = await outcome("--lock", "--processes", "4", "--leases", "30", "--minutes", "0.3", "--seed", "test");
    expect(text).toMatch(/^No violation of T1, T2, L1, L2; counters only rose/m);
    expect(code).toBe(0);
  });

  test.concurrent("T1 T2 L2 of a lock that neither seals nor quarantines is found wanting: this is the control", async () => {
    const { code, text } = await outcome("--lock", "--short", "--seed", "test", "--control");
    expect(text).toMatch(/violations\n {2}(T1|T2|L2)/);
    expect(code).toBe(0);
  });

  // The `expect` of the test itself: the global one loses its test once a concurrent one has ended.
  test.concurrent("that is interrupted ends every process that it has started", async ({ expect }) => {
    const { child, mark } = start("--minutes", "1", "--clients", "2");
    const started = (): number => livingWith(mark).filter((command) => PROGRAMS.test(command)).length;
    await expect.poll(started, { timeout: PATIENCE_MS }).toBe(6);
    child.signal("SIGINT");
    const { code, signal } = await child.waitForExit();
    expect(code === 0 && signal === null).toBe(false);
    await expect.poll(() => livingWith(mark), { timeout: PATIENCE_MS }).toEqual([]);
  });
});

test.concurrent("arguments that make no sense are refused with a sentence, the usage and exit code 2", async () => {
  const { code, text } = await outcome("--minutes", "soon");
  expect(text).toMatch(/^--minutes takes a number from 0.01 to 10000, not "soon".\n\nnpm run faults -- \[options\]/);
  expect(code).toBe(2);
});

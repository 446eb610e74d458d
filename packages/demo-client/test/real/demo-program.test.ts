// The program: its arguments, exit codes, output for other programs, and what is left of it.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { isRunning, processState, startNode } from "@palisade/testkit";
import { expect, test, vi } from "@palisade/testkit/vitest";
import { onTestFinished } from "vitest";

const program = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** Servers and a scenario take a few seconds, on a busy machine several times that. */
const withTime = { timeout: 120_000 };

interface Run {
  readonly code: number | string | null | undefined;
  readonly out: string;
  readonly err: string;
}

function demo(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], (error, out, err) => resolve({ code: error === null ? 0 : error.code, out, err }));
  });
}

test("arguments that cannot be right are one sentence and exit code 2, before anything is started", async () => {
  const sentence = expect.stringMatching(/^There is no scenario "gc-paus"; there are gc-pause, .*, and all\.\n$/);
  expect(await demo("gc-paus")).toEqual({ code: 2, out: "", err: sentence });
});

test("servers that cannot be started are one sentence and exit code 1", async () => {
  vi.stubEnv("REDIS_SERVER_BIN", "/no/such/server");
  vi.stubEnv("PALISADE_TEST_PROVIDER", "local");
  onTestFinished(() => void vi.unstubAllEnvs());
  const none = await demo();
  expect(none).toMatchObject({ code: 1, out: "", err: expect.stringMatching(/^The servers do not come up: REDIS_SERVER_BIN names .*\n$/) });
});

test("--list names every scenario", async () => {
  const { code, out } = await demo("--list");
  expect(code).toBe(0);
  expect(out).toMatch(/^gc-pause +a worker is paused past the end of its lease, wakes up and writes\n/);
});

test("--json prints one event per line and nothing else, from the scenario to its end", withTime, async () => {
  const { code, out } = await demo("cron-once", "--json");
  expect(code).toBe(0);
  const events = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(events[0]).toEqual({
    event: "scenario",
    scenario: "cron-once",
    about: expect.any(String),
    claim: expect.any(String),
    ttlMs: 1_000,
  });
  expect(events[1]).toMatchObject({
    event: "act",
    act: "with Palisade",
    actors: expect.arrayContaining(["scheduler 4", "lock", "gateway", "store"]),
  });
  for (const event of events.filter(({ event }) => event === "step"))
    expect(event).toMatchObject({ atMs: expect.any(Number), kind: expect.any(String), from: expect.any(String), text: expect.any(String) });
  expect(events.at(-1)).toMatchObject({ event: "end", ok: true, elapsedMs: expect.any(Number), proven: expect.any(String) });
});

test("when the output is no longer read, everything is stopped, with one sentence and exit code 141", withTime, async () => {
  const child = spawn(process.execPath, [program, "three-items"], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.once("data", () => child.stdout.destroy()); // as | head -1 does
  const [err, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect({ code, err }).toEqual({
    code: 141,
    err: "The output is no longer read: stopped in the middle of the scenario. Everything that was started is stopped.\n",
  });
});

test("Ctrl-C in the middle of a scenario is one sentence and exit code 130, and nothing is left running", withTime, async () => {
  // Local servers, whose processes can be counted.
  const child = startNode(program, ["gc-pause", "--ttl", "30000"], { env: { PALISADE_TEST_PROVIDER: "local" } });
  await child.says(/SIGSTOP/);
  const started = descendantsOf(child.pid);
  child.signal("SIGINT");
  expect(await child.waitForExit()).toEqual({ code: 130, signal: null });
  expect(child.lastLines(1)).toEqual(["Stopped in the middle of the scenario. Everything that was started is stopped."]);
  // Five Redis, Postgres, the gateway and two workers at least.
  expect(started.length).toBeGreaterThanOrEqual(9);
  await expect.poll(() => started.filter(isRunning), { timeout: 30_000, interval: 10 }).toEqual([]);
});

function descendantsOf(ancestor: number): readonly number[] {
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  const parents = new Map(pids.map((pid) => [Number(pid), processState(pid)?.parent]));
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === ancestor || isBelow(parent));
  };
  return [...parents.keys()].filter(isBelow);
}

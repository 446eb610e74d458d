// The soak as people run it, for seconds: a client that leaks is found beside one that does not,
// and an interrupted run leaves its rows and no process.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, isRunning, startChild } from "@palisade/testkit";
import { afterAll, describe, expect, test } from "vitest";

const program = fileURLToPath(new URL("../../dist/soak.js", import.meta.url));
/**
 * Twelve seconds, of which eight are judged: several times the longest operation (3 s of waiting),
 * because the number of operations under way changes only as fast as they end. In three seconds one
 * curve in hundreds seemed to rise, and one leak in fifty was missed.
 */
const MINUTES = "0.2";
const folder = mkdtempSync(join(tmpdir(), "soak-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Line {
  readonly kind: string;
  readonly pids?: Record<string, number>;
  readonly verdicts?: readonly { readonly curve: string; readonly kind: string }[];
}

function start(name: string, args: readonly string[], onLine: (line: string) => void = () => {}): Child {
  const all = [program, "--minutes", MINUTES, "--rate", "200", "--clients", "2", "--seed", name, "--json", join(folder, name), ...args];
  return startChild({ name: "soak", command: process.execPath, args: all, onLine });
}

function linesOf(name: string): Line[] {
  const text = readFileSync(join(folder, name), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

/** It takes fifteen seconds, and on a busy machine several times that. */
const PATIENCE_MS = 300_000;
/** Of these only the end counts: they need not be as busy as one whose curves are judged. */
const endless = ["--minutes", "5", "--rate", "20"];

describe("the soak", { timeout: PATIENCE_MS }, () => {
  test("finds each leak of one client, and calls its honest peer flat in the same curves", async () => {
    const lines: string[] = [];
    const { code } = await start("leaky", ["--leak", "memory,timers,files"], (line) => lines.push(line)).waitForExit();
    const told = lines.join("\n");
    expect(code, told).toBe(0);
    const verdicts = linesOf("leaky").at(-1)?.verdicts ?? [];
    const of = (client: string): (string | undefined)[] =>
      ["external", "timers", "fds"].map((panel) => verdicts.find(({ curve }) => curve === `client-${panel}/${client}`)?.kind);
    expect(of("client 1"), told).toEqual(["rising", "rising", "rising"]);
    expect(of("client 2"), told).toEqual(["flat", "flat", "flat"]);
  });

  test.concurrent("keeps its rows when it is interrupted, and leaves no process behind", async ({ expect }) => {
    const child = start("interrupted", endless);
    await expect.poll(() => rowsOf("interrupted"), { timeout: PATIENCE_MS }).toBeGreaterThan(1);
    child.signal("SIGINT");
    expect((await child.waitForExit()).code).toBe(130);
    const lines = linesOf("interrupted");
    expect(lines.at(-1)?.kind).toBe("end");
    const pids = lines[0]?.pids ?? {};
    expect(pids).toMatchObject({ gateway: expect.any(Number), "client 1": expect.any(Number), "client 2": expect.any(Number) });
    await expect.poll(() => Object.values(pids).filter(isRunning), { timeout: PATIENCE_MS }).toEqual([]);
  });

  test.concurrent("that lasts for long ends at once, with the reason, when its gateway is gone", async ({ expect }) => {
    const lines: string[] = [];
    const child = start("lost", endless, (line) => lines.push(line));
    await expect.poll(() => rowsOf("lost"), { timeout: PATIENCE_MS }).toBeGreaterThan(1);
    process.kill(linesOf("lost")[0]?.pids?.gateway ?? Number.NaN, "SIGKILL");
    expect((await child.waitForExit()).code).toBe(1);
    expect(lines.join("\n")).toContain("the soak broke off: Error: the gateway was ended by SIGKILL");
  });
});

function rowsOf(name: string): number {
  try {
    return linesOf(name).filter(({ kind }) => kind === "row").length;
  } catch {
    return 0; // It has not begun, or is in the middle of a line.
  }
}

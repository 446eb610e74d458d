// The soak as people run it, for seconds: a client that leaks is found among those that do not, and an interrupted run leaves its rows and nothing else.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";
import { afterAll, describe, expect, test } from "vitest";

const program = fileURLToPath(new URL("../../../dist/profiles/soak/main.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "soak-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Line {
  readonly kind: string;
  readonly pids?: Record<string, number>;
  readonly verdicts?: readonly { readonly curve: string; readonly kind: string }[];
}

function start(name: string, args: readonly string[], onLine: (line: string) => void = () => {}): Child {
  const all = [program, "--minutes", "0.05", "--rate", "200", "--clients", "2", "--seed", name, "--json", join(folder, name), ...args];
  return startChild({ name: "soak", command: process.execPath, args: all, onLine });
}

function linesOf(name: string): Line[] {
  const text = readFileSync(join(folder, name), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** It takes eight seconds, and on a machine that has much else to do, several times that. */
const PATIENCE_MS = 100_000;

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

  test("keeps its rows when it is interrupted, and leaves no process behind", async () => {
    const child = start("interrupted", ["--minutes", "5"]);
    await expect.poll(() => rowsOf("interrupted"), { timeout: PATIENCE_MS }).toBeGreaterThan(1);
    child.signal("SIGINT");
    expect((await child.waitForExit()).code).toBe(130);
    const lines = linesOf("interrupted");
    expect(lines.at(-1)?.kind).toBe("end");
    const pids = Object.values(lines[0]?.pids ?? {});
    expect(pids).toHaveLength(8);
    expect(pids.filter(isAlive)).toEqual([]);
  });
});

function rowsOf(name: string): number {
  try {
    return linesOf(name).filter(({ kind }) => kind === "row").length;
  } catch {
    return 0; // It has not begun, or is in the middle of a line.
  }
}

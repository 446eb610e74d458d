// The headline rows as people run them, with rounds that are too short to measure anything: what
// is judged is that every row runs on real servers, that its results have their shape, and that
// nothing is left running.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, isRunning, startNode } from "@palisade/testkit";
import { afterAll, describe, expect, test } from "vitest";
import { parseReport, type Report } from "../../src/measure/results.js";

const program = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "bench-"));
afterAll(() => rmSync(folder, { recursive: true }));
/** A run starts thirty processes, one after the other. */
const LIMIT_MS = 240_000;
const TINY = ["--rounds", "1", "--seconds", "0.02"];

function start(args: readonly string[]): Child {
  return startNode(program, args, { name: "bench" });
}

async function reportOf(name: string, args: readonly string[]): Promise<Report> {
  const file = join(folder, name);
  const child = start([...args, ...TINY, "--json", file]);
  const { code } = await child.waitForExit();
  expect(code, child.howItEnded()).toBe(0);
  return parseReport(readFileSync(file, "utf8"));
}

function children(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
}

const locks = ["one-at-a-time", "fresh-names", "256-at-once", "handover-16"];
const servers = ["puts/64", "puts/1", "gets/64", "gets/1", "hot-key", "refusals", "transactions"];

describe("a quick run", { timeout: LIMIT_MS }, () => {
  test("measures every headline, each with rates, times and processor times of all that took part", async () => {
    const report = await reportOf("quick.json", ["quick"]);
    expect(report).toMatchObject({ format: 1, scope: "quick", machine: { cores: expect.any(Number) } });
    expect(report.command).toBe("npm run bench -- quick --rounds 1 --seconds 0.02");
    expect(Object.keys(report.versions)).toEqual(expect.arrayContaining(["node", "ioredis", "redlock", "fastify", "redis", "postgres"]));
    expect(report.results.map(({ id }) => id)).toEqual([...locks, ...servers]);
    for (const { id, rows } of report.results) {
      const roles = locks.includes(id) ? ["clientUs", "redisUs"] : ["clientUs", "serverUs", "postgresUs"];
      for (const { figures, name } of rows)
        for (const key of ["perSecond", "p50Us", "p99Us", "ratio", ...roles])
          expect(figures[key], `${id}, ${name}, ${key}`).toBeGreaterThanOrEqual(0);
      expect(rows.map(({ kind }) => kind)).toContain("ours");
      expect(rows.every(({ rounds }) => rounds.perSecond?.length === 1)).toBe(true);
    }
  });

  test("ends with its processes when it is interrupted", async () => {
    const child = start(["256-at-once", "--seconds", "0.05"]);
    await child.says(/^256 at once/);
    await expect.poll(() => children(child.pid).length, { timeout: 30_000 }).toBeGreaterThan(6);
    const started = children(child.pid);
    child.signal("SIGINT");
    expect((await child.waitForExit()).signal).toBe("SIGINT");
    await expect.poll(() => started.filter(isRunning), { timeout: 30_000 }).toEqual([]);
  });

  test("starts nothing if its arguments make no sense", async () => {
    const child = start(["quick", "unheard-of"]);
    expect(await child.waitForExit()).toMatchObject({ code: 2 });
    expect(child.lastLines(100).join("\n")).toContain("quick is a set of parts: name it alone");
  });
});

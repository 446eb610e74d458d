// Rounds in turns, medians of rounds, ratios within a round; and the goals and losses that the page
// finds in results.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Contestant, compare } from "../../src/measure/comparison.js";
import { type Report, type Result, reportText } from "../../src/measure/results.js";
import { lossRows, pageOf } from "../../src/page.js";

const silent = (): void => {};

/** Takes so many microseconds in each of its rounds; the first round warms up. */
function scripted(name: string, kind: Contestant["kind"], roundsUs: readonly number[], log: string[] = []): Contestant {
  let next = -1;
  return {
    name,
    kind,
    does: `what ${name} does`,
    processes: {},
    round: async (seconds) => {
      const us = roundsUs[Math.max(0, next++)] ?? Number.NaN;
      log.push(name);
      return { operations: 4_000, seconds, latenciesUs: [us, us, us + 1] };
    },
  };
}

const plan = (contestants: readonly Contestant[], rounds: number) => ({
  id: "one-at-a-time",
  title: "One at a time",
  remark: "a remark",
  contestants,
  effort: { rounds, seconds: 0.5 },
  compared: "p50Us" as const,
});

describe("a comparison", () => {
  test("lets every contestant begin a round once, after a round that is not counted", async () => {
    const log: string[] = [];
    const contestants = ["a", "b", "c"].map((name) => scripted(name, "peer", [1, 1, 1], log));
    const { rows } = await compare(plan(contestants, 3), silent);
    expect(log).toEqual(["a", "b", "c", "a", "b", "c", "b", "c", "a", "c", "a", "b"]);
    expect(rows.map(({ rounds }) => rounds.p50Us?.length)).toEqual([3, 3, 3]);
  });

  test("takes ratios within a round, so that a disturbance of a whole round does not count", async () => {
    const floor = scripted("floor", "bound", [100, 1_000, 100]);
    const ours = scripted("@palisade/lock", "ours", [110, 1_100, 120]);
    const { rows } = await compare(plan([floor, ours], 3), silent);
    expect(rows[1]?.figures).toMatchObject({ p50Us: 120, ratio: 1.1, perSecond: 8_000 });
  });

  test("counts no round that did nothing", async () => {
    const idle: Contestant = { ...scripted("idle", "peer", [1]), round: async (seconds) => ({ operations: 0, seconds, latenciesUs: [] }) };
    const short = { ...plan([idle], 1), effort: { rounds: 1, seconds: 0.01 } };
    await expect(compare(short, silent)).rejects.toThrow("idle did nothing in 0.01 s");
  });
});

async function results(oursUs: number, load: number): Promise<Report> {
  const contestants = [
    scripted("floor: EVALSHA, majority", "bound", [100, 100]),
    scripted("@palisade/lock", "ours", [oursUs, oursUs]),
    scripted("a peer", "peer", [110, 110]),
  ];
  const result: Result = await compare(plan(contestants, 2), silent);
  const machine = {
    system: "an OS",
    processor: "a processor",
    cores: 2,
    memoryGb: 1,
    loadAverage: [load, 0, 0],
    processorTimes: "nowhere",
  };
  return {
    format: 1,
    command: "npm run bench",
    scope: "usual",
    leftOut: ["growth"],
    startedAt: "2000-01-01T00:00:00.000Z",
    tookSeconds: 60,
    machine,
    versions: { node: "20" },
    results: [result],
  };
}

const page = (report: Report): string => pageOf(reportText(report));

describe("the page of a run", () => {
  test("is in this checkout what the benchmark makes of the results beside it", () => {
    const docs = new URL("../../../../docs/", import.meta.url);
    const read = (name: string): string => readFileSync(new URL(name, docs), "utf8");
    expect(read("performance.md")).toBe(pageOf(read("performance.json")));
  });

  test("says of each goal whether it was kept, missed, or not measured", async () => {
    const fast = page(await results(104, 0));
    expect(fast).toContain("| one at a time, p50 × best peer | ≤ 1 × | 0.95 × | kept |");
    expect(fast).toContain("| names never locked before, p50 × best peer | ≤ 1 × | – | not in this run |");
    expect(page(await results(120, 0))).toMatch(/\| one at a time, p50 × best peer \| ≤ 1 × \| 1\.09 × \| \*\*missed\*\*/);
  });

  test("lists everybody who was faster, and nobody else", async () => {
    const names = async (us: number) => lossRows((await results(us, 0)).results).map(([, name]) => name);
    expect(await names(90)).toEqual([]);
    expect(await names(105)).toEqual(["floor: EVALSHA, majority (a bound, no product)"]);
    expect(await names(120)).toEqual(["floor: EVALSHA, majority (a bound, no product)", "a peer"]);
  });

  test("says when other work ran beside the run, and judges nothing then", async () => {
    const busy = page(await results(100, 1.2));
    expect(busy).toContain("other work ran beside this run");
    expect(busy).toContain("| one at a time, p50 × best peer | ≤ 1 × | 0.91 × | not judged, the machine was busy |");
    expect(page(await results(100, 0.3))).not.toContain("other work ran beside this run");
  });

  test("is made of results alone, and refuses what are none", async () => {
    expect(page(await results(100, 0))).toContain("| One at a time | acquire + release, p50 in µs | 100 | 110 (a peer) |");
    expect(() => pageOf("{}")).toThrow("this file holds no results of the benchmark");
  });
});

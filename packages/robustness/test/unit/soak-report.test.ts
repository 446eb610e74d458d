// What a soak writes down can be judged and drawn later, even if a kill cut it short.
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type Finding, findAll, isFlat, isJudged, standsOut } from "../../src/checkers/curves.js";
import { readValues } from "../../src/harness/command.js";
import { readSoak, Samples } from "../../src/history/samples.js";
import type { SoakAsked } from "../../src/profiles/soak.js";
import { soakCommand } from "../../src/profiles/soak-command.js";
import { curveTable, verdictOf } from "../../src/report/curve-table.js";
import { drawCurves } from "../../src/report/curves.js";
import { parseTags } from "./tags.js";

const folder = mkdtempSync(join(tmpdir(), "soak-"));
afterAll(() => rmSync(folder, { recursive: true }));

const asked = soakCommand.read(readValues(["--minutes", "30", "--seed", "s"], soakCommand.texts, soakCommand.flags));

/** Half an hour of two clients, one of which leaks timers, and of one node. */
function written(name: string): Samples {
  const samples = new Samples(join(folder, name), { asked, servers: ["servers"] });
  for (let i = 1; i <= 360; i++) {
    const values = { "client-timers/client 1": 10 + i, "client-timers/client 2": 10 + (i % 2), "redis-keys/n1": 5 };
    samples.addRow({ atMs: i * 5_000, values });
    if (i % 40 === 0) samples.addDisturbance({ atMs: i * 5_000, what: "node <slow> & late" });
  }
  return samples;
}

function named(id: string, findings: readonly Finding[]): Finding {
  const finding = findings.find(({ panel }) => panel.id === id);
  if (finding === undefined) throw new Error(`the panel ${id} is missing`);
  return finding;
}

describe("the record of a soak", () => {
  test("is read back as it was written, without the line that a kill has cut short", () => {
    const samples = written("cut");
    appendFileSync(join(folder, "cut"), '{"kind":"row","atMs":1805000,"val');
    const run = readSoak<SoakAsked>(join(folder, "cut"));
    expect(run.asked).toEqual(JSON.parse(JSON.stringify(asked)));
    expect(run.soaked.ending).toBe("interrupted");
    expect(run.soaked.samples.rows).toEqual(samples.rows.map((row) => ({ kind: "row", ...row })));
    expect(run.soaked.samples.disturbances).toHaveLength(9);
  });

  test("is judged curve by curve, and a panel is as bad as its worst", () => {
    const findings = findAll(written("judged"));
    const timers = named("client-timers", findings);
    const keys = named("redis-keys", findings);
    expect([isFlat(timers), isFlat(keys)]).toEqual([false, true]);
    expect(verdictOf(timers)).toBe("RISING (client 1)");
    expect(timers.worst?.name).toBe("client 1");
    expect([standsOut(timers), standsOut(keys)]).toEqual([true, false]);
  });

  test("does not call a client leaky that grows as all of its peers do", () => {
    const samples = new Samples(undefined, {});
    for (let i = 1; i <= 360; i++)
      samples.addRow({ atMs: i * 5_000, values: { "client-rss/client 1": 80 + i, "client-rss/client 2": 70 + i } });
    const rss = findAll(samples).find(({ panel }) => panel.id === "client-rss");
    expect(rss && [isFlat(rss), standsOut(rss)]).toEqual([false, false]);
  });
});

describe("the heap in use, a saw", () => {
  /** Seems to rise, because its ground was sampled ever later; and what the collections say. */
  const heapWith = (kept: (i: number) => number | undefined): Finding => {
    const samples = new Samples(undefined, {});
    for (let i = 1; i <= 360; i++) {
      const left = kept(i);
      samples.addRow({
        atMs: i * 5_000,
        values: { "gateway-heap/gateway": 20 + i / 30, ...(left === undefined ? {} : { "gateway-kept/gateway": left }) },
      });
    }
    return named("gateway-heap", findAll(samples));
  };

  test("is shown and not judged where collections say exactly what is kept, and those are judged", () => {
    const finding = heapWith((i) => 18 + (Math.floor(i / 30) % 2) / 10);
    expect([isJudged(finding), isFlat(finding), verdictOf(finding)]).toEqual([false, true, "not judged, only shown"]);
    const leaking = new Samples(undefined, {});
    for (let i = 1; i <= 360; i++)
      leaking.addRow({ atMs: i * 5_000, values: { "gateway-heap/gateway": 30, "gateway-kept/gateway": 18 + Math.floor(i / 30) / 6 } });
    expect(verdictOf(named("gateway-kept", findAll(leaking)))).toBe("RISING (gateway)");
  });

  test("is judged where nothing was collected, or hardly ever: what a collection once said says nothing of later", () => {
    expect(verdictOf(heapWith(() => undefined))).toBe("RISING (gateway)");
    expect(verdictOf(heapWith(() => 18))).toBe("RISING (gateway)");
    expect(verdictOf(heapWith((i) => (i < 120 ? 18 + i : i < 250 ? 18 : 19)))).toBe("RISING (gateway)");
  });

  test("is drawn without a verdict, and does not count among the curves that are flat", () => {
    const samples = new Samples(undefined, {});
    for (let i = 1; i <= 360; i++)
      samples.addRow({ atMs: i * 5_000, values: { "client-heap/client 1": 20 + i / 30, "client-kept/client 1": 9 + (i % 30) / 100 } });
    const svg = drawCurves(asked, { samples, operations: {} }, findAll(samples));
    expect(svg).toContain("30 minutes of contended load: 1 curves, all flat");
    expect(svg).toContain(">not judged<");
    expect(svg.match(/class="trend/g)).toHaveLength(1);
  });
});

describe("what people are shown", () => {
  const samples = written("shown");
  const findings = findAll(samples);
  const outcome = { samples, servers: ["servers"], operations: { read: 12_345 }, failures: {}, ending: "time is over" as const };

  test("the table names every curve with its slope and verdict", () => {
    const text = curveTable(outcome, findings);
    expect(text).toContain("12 345 operations in 30.0 min (time is over)");
    expect(text).toMatch(/Active timers +2 +\d+ +\+720\/h .* RISING \(client 1\)/);
    expect(text).toMatch(/Keys +1 +5 +0\/h .* flat/);
  });

  test("the picture is one file that needs no other, well-formed, for light and dark, with every measured panel and its verdict", () => {
    const svg = drawCurves(asked, outcome, findings);
    const document = parseTags(svg);
    expect(document).toEqual([]);
    expect(svg.match(/class="panel"/g)).toHaveLength(2);
    expect(svg).toContain("▲ rising · +720/h");
    expect(svg).toContain("flat · 0/h");
    expect(svg).toContain("node &lt;slow&gt; &amp; late");
    expect(svg).toContain("prefers-color-scheme:dark");
    expect(svg).not.toMatch(/NaN|undefined|Infinity|href|url\(/);
  });
});

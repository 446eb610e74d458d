// What a soak writes down can be judged and drawn later, even if the run was killed in the middle of a line.
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readArguments } from "../../../src/soak/arguments.js";
import { Chronicle } from "../../../src/soak/chronicle.js";
import { findAll, isFlat, standsOut } from "../../../src/soak/findings.js";
import { draw } from "../../../src/soak/picture/picture.js";
import { readRun } from "../../../src/soak/replay.js";
import { tell, verdictOf } from "../../../src/soak/words.js";

const folder = mkdtempSync(join(tmpdir(), "soak-"));
afterAll(() => rmSync(folder, { recursive: true }));

const asked = readArguments(["--minutes", "30", "--seed", "s"], Date.now);

/** Half an hour of two clients, one of which leaks timers, and of one node. */
function written(name: string): Chronicle {
  const chronicle = new Chronicle(join(folder, name), { asked, servers: ["servers"] });
  for (let i = 1; i <= 360; i++) {
    const values = { "client-timers/client 1": 10 + i, "client-timers/client 2": 10 + (i % 2), "redis-keys/n1": 5 };
    chronicle.addRow({ atMs: i * 5_000, values });
    if (i % 40 === 0) chronicle.addDisturbance({ atMs: i * 5_000, what: "node <slow> & late" });
  }
  return chronicle;
}

describe("the record of a soak", () => {
  test("is read back as it was written, without the line that a kill has cut short", () => {
    const chronicle = written("cut");
    appendFileSync(join(folder, "cut"), '{"kind":"row","atMs":1805000,"val');
    const run = readRun(join(folder, "cut"));
    expect(run.asked).toEqual(JSON.parse(JSON.stringify(asked)));
    expect(run.outcome.ending).toBe("interrupted");
    expect(run.outcome.chronicle.rows).toEqual(chronicle.rows.map((row) => ({ kind: "row", ...row })));
    expect(run.outcome.chronicle.disturbances).toHaveLength(9);
  });

  test("is judged curve by curve, and a panel is as bad as its worst", () => {
    const findings = findAll(written("judged"));
    const timers = findings.find(({ panel }) => panel.id === "client-timers");
    const keys = findings.find(({ panel }) => panel.id === "redis-keys");
    if (timers === undefined || keys === undefined) throw new Error("a panel is missing");
    expect([isFlat(timers), isFlat(keys)]).toEqual([false, true]);
    expect(verdictOf(timers)).toBe("RISING (client 1)");
    expect(timers.worst?.name).toBe("client 1");
    expect([standsOut(timers), standsOut(keys)]).toEqual([true, false]);
  });

  test("does not call a client leaky that grows as all of its peers do", () => {
    const chronicle = new Chronicle(undefined, {});
    for (let i = 1; i <= 360; i++)
      chronicle.addRow({ atMs: i * 5_000, values: { "client-rss/client 1": 80 + i, "client-rss/client 2": 70 + i } });
    const rss = findAll(chronicle).find(({ panel }) => panel.id === "client-rss");
    expect(rss && [isFlat(rss), standsOut(rss)]).toEqual([false, false]);
  });
});

describe("what people are shown", () => {
  const chronicle = written("shown");
  const findings = findAll(chronicle);
  const outcome = { chronicle, servers: ["servers"], operations: { read: 12_345 }, failures: {}, ending: "time is over" as const };

  test("the table names every curve with its slope and verdict", () => {
    const text = tell(outcome, findings);
    expect(text).toContain("12 345 operations in 30.0 min (time is over)");
    expect(text).toMatch(/Active timers +2 +\d+ +\+720\/h .* RISING \(client 1\)/);
    expect(text).toMatch(/Keys +1 +5 +0\/h .* flat/);
  });

  test("the picture is one file that needs no other, well-formed, for light and dark, with every measured panel and its verdict", () => {
    const svg = draw(asked, outcome, findings);
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

/** The tags that are still open at the end, or that were closed out of order. */
function parseTags(svg: string): string[] {
  const open: string[] = [];
  for (const [, end, name = "", self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (self === "/") continue;
    if (end === "") open.push(name);
    else if (open.pop() !== name) return [`</${name}>`];
  }
  return open;
}

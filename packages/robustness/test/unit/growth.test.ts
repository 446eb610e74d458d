// What the judge of the soak calls flat, and what not: curves with a leak and without.
import { describe, expect, test } from "vitest";
import { chanceOf } from "../../src/chance.js";
import { judge, type Rule, type Verdict } from "../../src/checkers/growth.js";

const MINUTE_MS = 60_000;
const span = { fromMs: 0, untilMs: 30 * MINUTE_MS };
const memory: Rule = { bad: "rising", fold: "median", percentPerHour: 5, perHour: 2, worthMentioning: 1 };
const counts: Rule = { bad: "rising", fold: "median", percentPerHour: 5, perHour: 2, worthMentioning: 1.5 };

type Shape = (minutes: number, noise: () => number) => number;

/** A value every five seconds for half an hour. */
function verdict(shape: Shape, { seed = "one", rule = memory }: { seed?: string; rule?: Rule } = {}): Verdict {
  const chance = chanceOf(seed, "noise");
  // Roughly normal, of deviation 1.
  const noise = (): number => Array.from({ length: 12 }, () => chance.next()).reduce((sum, one) => sum + one, -6);
  const points = Array.from({ length: 360 }, (_, i) => ({ atMs: i * 5_000, value: shape((i * 5_000) / MINUTE_MS, noise) }));
  return judge(points, rule, span);
}

/** Each value remembers so much of the one before it. */
function resembling(noise: () => number, state: { last: number; readonly memory: number }): number {
  state.last = state.memory * state.last + noise();
  return state.last;
}

describe("a curve is flat", () => {
  test("when it never moves", () => {
    expect(verdict(() => 17)).toMatchObject({ kind: "flat", perHour: 0, leastPerHour: 0, mostPerHour: 0, level: 17 });
  });

  const best: Rule = { ...memory, fold: "best" };
  const tolerant: Rule = { ...best, percentPerHour: 60 };
  const strict: Rule = { ...memory, worthMentioning: 0 };
  test.each<[when: string, shape: Shape, rule?: Rule]>([
    ["it is noise around a level", (_, noise) => 100 + 3 * noise()],
    ["it is a saw of rubbish that is collected", (minutes) => 40 + 25 * (minutes % 1.3), best],
    ["it is a saw of few teeth", (minutes) => 40 + 10 * (minutes % 3.1)],
    [
      "other programs use the machine more and more, but not all the time",
      (minutes, noise) => 10 + (minutes % 1 > 0.3 ? 3 * minutes : 0) + noise(),
      tolerant,
    ],
    ["it has a step at the start", (minutes, noise) => (minutes < 6 ? 60 : 110) + noise()],
    ["it has one step later and stays there", (minutes, noise) => (minutes < 17 ? 60 : 64) + noise() / 4],
    ["it warms up ever more slowly", (minutes, noise) => 100 - 40 * Math.exp(-minutes / 4) + noise()],
    ["it falls and only rising is bad", (minutes, noise) => 100 - minutes + noise()],
    ["a few values are far off", (minutes, noise) => (Math.round(minutes * 12) % 29 === 0 ? 400 : 50) + noise()],
    ["it grows by less than the rule tolerates", (minutes) => 100 + (4 / 60) * minutes, strict],
    ["it grows by less than the rule tolerates of a low level", (minutes) => 10 + (1.5 / 60) * minutes, strict],
    ["all it grows by is not worth mentioning", (minutes) => 10 + (2.5 / 60) * minutes],
    [
      "it warms up fast and goes on as slowly as is tolerated",
      (minutes) => (minutes < 10 ? 100 + 10 * minutes : 200 + (8 / 60) * (minutes - 10)),
    ],
  ])("when %s", (_, shape, rule = memory) => {
    expect(verdict(shape, { rule }).kind).toBe("flat");
  });

  test("when it grew for long, but not in the last third", () => {
    const seen = verdict((minutes, noise) => 60 + Math.min(minutes, 21) + noise() / 4);
    expect(seen.kind).toBe("flat");
    expect(seen.leastPerHour).toBeGreaterThan(0);
  });

  test("in at least 98 of 100 runs of noise that resembles itself, even if the rule tolerates nothing", () => {
    const intolerant = { ...memory, percentPerHour: 0, perHour: 0, worthMentioning: 0 };
    const wrong = Array.from({ length: 400 }, (_, seed) => {
      const state = { last: 0, memory: 0.9 };
      return verdict((_minutes, noise) => 100 + resembling(noise, state), { seed: `resembling ${seed}`, rule: intolerant }).kind;
    }).filter((kind) => kind !== "flat");
    expect(wrong.length).toBeLessThanOrEqual(8);
  });
});

describe("a curve is not flat", () => {
  test("when a slow leak hides in noise ten times its growth per minute", () => {
    const seen = verdict((minutes, noise) => 100 + 0.3 * minutes + 3 * noise());
    expect(seen.kind).toBe("rising");
    expect(seen.leastPerHour).toBeLessThan(18);
    expect(seen.mostPerHour).toBeGreaterThan(18);
  });

  const best: Rule = { ...memory, fold: "best", percentPerHour: 60 };
  test.each<[when: string, kind: Verdict["kind"], shape: Shape, rule?: Rule]>([
    [
      "it leaks one handle every three minutes",
      "rising",
      (minutes, noise) => 57 + Math.floor(minutes / 3) + (noise() > 1.5 ? 1 : 0),
      counts,
    ],
    ["each restart of a node leaves something behind", "rising", (minutes, noise) => 80 + 2 * Math.floor(minutes / 2.5) + noise()],
    ["the ground under a saw rises", "rising", (minutes) => 40 + 0.4 * minutes + 25 * (minutes % 1.3), { ...memory, fold: "best" }],
    ["it falls and falling is bad", "falling", (minutes, noise) => 200 - 2 * minutes + 5 * noise(), { ...memory, bad: "falling" }],
    ["even the best moments become worse", "rising", (minutes, noise) => 10 + minutes + 4 * Math.abs(noise()), best],
    ["even the best rates fall", "falling", (minutes, noise) => 99 - 2 * minutes - 4 * Math.abs(noise()), { ...best, bad: "falling" }],
  ])("when %s", (_, kind, shape, rule = memory) => {
    expect(verdict(shape, { rule }).kind).toBe(kind);
  });

  test("in at least 95 of 100 runs with a leak of four times what is tolerated in noise that resembles itself", () => {
    const found = Array.from({ length: 100 }, (_, seed) => {
      const state = { last: 0, memory: 0.5 };
      return verdict((minutes, noise) => 100 + (20 / 60) * minutes + resembling(noise, state), { seed: `leak ${seed}` }).kind;
    }).filter((kind) => kind === "rising");
    expect(found.length).toBeGreaterThanOrEqual(95);
  });
});

test("a curve of too few values is not called flat", () => {
  const points = Array.from({ length: 7 }, (_, i) => ({ atMs: (11 + i) * MINUTE_MS, value: 5 }));
  expect(judge(points, memory, span)).toMatchObject({ kind: "too few values", level: 5 });
  expect(judge([], memory, span)).toMatchObject({ kind: "too few values", level: Number.NaN });
});

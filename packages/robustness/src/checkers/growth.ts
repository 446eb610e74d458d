// Whether a curve is flat. The first third of the run warms up and is not judged; the rest is
// folded into equal parts, so that no single sample decides. A curve grows if all of this holds:
// the lower limit of its slope is above zero; the slope is above what the rule tolerates, per cent
// and absolute; the whole rise is worth mentioning; and it still goes on in the last third, because
// what levels off is no leak. The judged time has to be several times the longest operation: the
// number of operations under way changes only as fast as they end, and no limit of a slope sees
// that in a shorter time.
import type { Point } from "../history/samples.js";
import { median, trendOf } from "./statistics.js";

export interface Rule {
  /** What is bad. */
  readonly bad: "rising" | "falling";
  /**
   * What stands for a part: its median; or its best value, for a saw whose teeth are garbage to be
   * collected, and for what other programs of the machine disturb. What grows or slows down does so
   * at the best of times, too.
   */
  readonly fold: "median" | "best";
  /** A slope up to the greater of the two is tolerated. */
  readonly percentPerHour: number;
  readonly perHour: number;
  /** A rise in all by less than this is none. */
  readonly worthMentioning: number;
}

export interface Verdict {
  /** not judged: another curve says the same exactly, and that one is. */
  readonly kind: "flat" | "rising" | "falling" | "too few values" | "not judged";
  /** The median of the judged values, NaN if there are none. */
  readonly level: number;
  readonly perHour: number;
  /** Of the line of this slope at time 0, with as many judged points above it as below. */
  readonly intercept: number;
  /** The limits between which the slope is, at 98 %. */
  readonly leastPerHour: number;
  readonly mostPerHour: number;
  /** The judged points after folding, for the picture. */
  readonly judged: readonly Point[];
}

export interface RunSpan {
  readonly fromMs: number;
  readonly untilMs: number;
}

const partsOf = { median: 40, best: 16 };
const LEAST_PARTS = 8;
const unknown = { perHour: Number.NaN, intercept: Number.NaN, leastPerHour: Number.NaN, mostPerHour: Number.NaN };
const HOUR_MS = 3_600_000;

/** The first third is warming up. */
export function judgedFromMs({ fromMs, untilMs }: RunSpan): number {
  return fromMs + (untilMs - fromMs) / 3;
}

export function judge(points: readonly Point[], rule: Rule, span: RunSpan): Verdict {
  const fromMs = judgedFromMs(span);
  const judged = fold(points, rule, { fromMs, untilMs: span.untilMs });
  const level = judged.length === 0 ? Number.NaN : median(judged.map(({ value }) => value));
  if (judged.length < LEAST_PARTS) return { kind: "too few values", level, ...unknown, judged };
  const { slope, least, most } = trendOf(judged);
  const sign = rule.bad === "rising" ? 1 : -1;
  const tolerated = Math.max(rule.perHour, (Math.abs(level) * rule.percentPerHour) / 100) / HOUR_MS;
  const late = trendOf(judged.slice(Math.floor(judged.length / 2))).slope;
  const isBad =
    (sign > 0 ? least : -most) > 0 &&
    sign * slope > tolerated &&
    sign * slope * (span.untilMs - fromMs) >= rule.worthMentioning &&
    sign * late > tolerated / 2;
  return {
    kind: isBad ? rule.bad : "flat",
    level,
    perHour: slope * HOUR_MS,
    intercept: median(judged.map(({ atMs, value }) => value - slope * atMs)),
    leastPerHour: least * HOUR_MS,
    mostPerHour: most * HOUR_MS,
    judged,
  };
}

function fold(points: readonly Point[], rule: Rule, { fromMs, untilMs }: RunSpan): Point[] {
  const inSpan = points.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
  const parts = partsOf[rule.fold];
  const widthMs = (untilMs - fromMs) / parts;
  return [...group(inSpan, fromMs, widthMs)].map(([part, values]) => ({
    atMs: fromMs + (part + 0.5) * widthMs,
    value: representative(values, rule),
  }));
}

function representative(values: readonly number[], { fold, bad }: Rule): number {
  if (fold === "median") return median(values);
  return bad === "rising" ? Math.min(...values) : Math.max(...values);
}

function group(points: readonly Point[], fromMs: number, widthMs: number): Map<number, number[]> {
  const parts = new Map<number, number[]>();
  for (const { atMs, value } of points) {
    const part = Math.floor((atMs - fromMs) / widthMs);
    const values = parts.get(part);
    if (values === undefined) parts.set(part, [value]);
    else values.push(value);
  }
  return parts;
}

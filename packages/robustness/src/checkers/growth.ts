// Whether a curve is flat. The first third of the run warms up and is not judged; the rest is
// folded into equal parts, so that no single sample decides. A curve grows if all of this holds:
// the lower limit of its slope is above zero; the slope is above what the rule tolerates, per cent
// and absolute; the whole rise is worth mentioning; and it still goes on in the last third, because
// what levels off is no leak. The judged time has to be several times the longest operation: the
// number of operations under way changes only as fast as they end, and no limit of a slope sees
// that in a shorter time. The slope is the median of the slopes of all pairs (Theil–Sen), its
// limits follow from the variance of Kendall's S, widened where neighbouring values resemble each
// other.
import { groupedBy } from "../history.js";

export interface Point {
  readonly atMs: number;
  readonly value: number;
}

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
  readonly kind: "flat" | "rising" | "falling" | "too few values";
  /** The median of the judged values, NaN if there are none. */
  readonly level: number;
  readonly perHour: number;
  /** The limits between which the slope is, at 98 %. */
  readonly leastPerHour: number;
  readonly mostPerHour: number;
}

interface RunSpan {
  readonly fromMs: number;
  readonly untilMs: number;
}

const partsOf = { median: 40, best: 16 };
const LEAST_PARTS = 8;
const unknown = { perHour: Number.NaN, leastPerHour: Number.NaN, mostPerHour: Number.NaN };
const HOUR_MS = 3_600_000;

export function judge(points: readonly Point[], rule: Rule, span: RunSpan): Verdict {
  // The first third is warming up.
  const fromMs = span.fromMs + (span.untilMs - span.fromMs) / 3;
  const judged = fold(points, rule, { fromMs, untilMs: span.untilMs });
  const level = judged.length === 0 ? Number.NaN : median(judged.map(({ value }) => value));
  if (judged.length < LEAST_PARTS) return { kind: "too few values", level, ...unknown };
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
    leastPerHour: least * HOUR_MS,
    mostPerHour: most * HOUR_MS,
  };
}

function fold(points: readonly Point[], { fold, bad }: Rule, { fromMs, untilMs }: RunSpan): Point[] {
  const inSpan = points.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
  const widthMs = (untilMs - fromMs) / partsOf[fold];
  return [...groupedBy(inSpan, ({ atMs }) => Math.floor((atMs - fromMs) / widthMs))].map(([part, own]) => {
    const values = own.map(({ value }) => value);
    const best = bad === "rising" ? Math.min(...values) : Math.max(...values);
    return { atMs: fromMs + (part + 0.5) * widthMs, value: fold === "median" ? median(values) : best };
  });
}

interface Trend {
  /** Per millisecond. */
  readonly slope: number;
  /** One-sided limits of the slope, at 99 % each. */
  readonly least: number;
  readonly most: number;
}

/** The standard normal deviate that one in a hundred exceeds. */
const DEVIATE = 2.326;

/** Of three points or more. */
export function trendOf(points: readonly Point[]): Trend {
  const slopes: number[] = [];
  points.forEach((later, i) => {
    for (const earlier of points.slice(0, i)) slopes.push((later.value - earlier.value) / (later.atMs - earlier.atMs));
  });
  slopes.sort((a, b) => a - b);
  const slope = middle(slopes);
  const residuals = points.map(({ atMs, value }) => value - slope * atMs);
  // Sen's limits: so many ranks on either side of the median as S deviates by chance.
  const reach = DEVIATE * Math.sqrt(kendallVariance(points) * resemblance(residuals));
  const at = (rank: number): number => slopes[Math.min(slopes.length - 1, Math.max(0, Math.round(rank)))] ?? slope;
  return { slope, least: at((slopes.length - 1 - reach) / 2), most: at((slopes.length - 1 + reach) / 2) };
}

/** Of Kendall's S if there is no trend; equal values vary less. */
function kendallVariance(points: readonly Point[]): number {
  const counts = new Map<number, number>();
  for (const { value } of points) counts.set(value, (counts.get(value) ?? 0) + 1);
  const term = (n: number): number => n * (n - 1) * (2 * n + 5);
  const ties = [...counts.values()].reduce((sum, count) => sum + term(count), 0);
  return (term(points.length) - ties) / 18;
}

/**
 * By what the variance grows because values resemble those before them; 1 if they do not. Only
 * resemblance beyond chance counts.
 */
function resemblance(residuals: readonly number[]): number {
  const n = residuals.length;
  const centre = median(residuals);
  const apart = residuals.map((value) => value - centre);
  const power = apart.reduce((sum, value) => sum + value * value, 0);
  if (power === 0) return 1;
  let factor = 1;
  for (let lag = 1; lag <= n / 4; lag++) {
    const shared = apart.slice(lag).reduce((sum, value, i) => sum + value * (apart[i] ?? 0), 0) / power;
    if (shared < DEVIATE / Math.sqrt(n) / 2) break;
    factor += 2 * (1 - lag / n) * shared;
  }
  return factor;
}

function middle(sorted: readonly number[]): number {
  const half = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(half)] ?? 0) + (sorted[Math.ceil(half)] ?? 0)) / 2;
}

/** The value below which the given part (0…1) of the samples lies. */
export function quantile(samples: readonly number[], part: number): number {
  if (samples.length === 0) throw new RangeError("no samples");
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

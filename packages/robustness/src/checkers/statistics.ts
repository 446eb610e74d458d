// Order statistics, and the trend of a noisy curve: the Theil–Sen slope (the median of the slopes
// of all pairs), with confidence limits from the variance of Kendall's S, which is widened where
// neighbouring values resemble each other.
import type { Point } from "../history/samples.js";

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

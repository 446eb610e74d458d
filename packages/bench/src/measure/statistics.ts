// Order statistics of measured samples.

/** The value below which the given part (0…1) of the samples lies. */
export function quantile(samples: readonly number[], part: number): number {
  if (samples.length === 0) throw new RangeError("no samples");
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

/** The median over the rounds of one figure divided by another of the same round. */
export function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((value, round) => value / (to[round] ?? Number.NaN)));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

// Order statistics of measured samples.

/** The value below which the given part (0…1) of the samples lies. */
export function quantile(samples: readonly number[], part: number): number {
  if (samples.length === 0) throw new RangeError("no samples");
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

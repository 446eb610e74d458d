// How results are shown: tables with aligned columns, the same with and without a terminal, and
// progress on a terminal.

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

/** Rows under their titles, each column as wide as its widest cell. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (columns[i]?.align === "left" ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(columns.map(({ title }) => title)), line(widths.map((width) => "─".repeat(width))), ...rows.map(line)].join("\n");
}

/** 12345.6 → "12 346". */
export function whole(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}

export function fixed(value: number, digits: number): string {
  return value.toFixed(digits);
}

export function heading(title: string, remark: string): void {
  console.log(`\n${title}\n${remark}\n`);
}

/** On a terminal only, where the next line overwrites it. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}

export function progressEnded(): void {
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
}

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

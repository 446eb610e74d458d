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

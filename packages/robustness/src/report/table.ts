// Plain text for a terminal: aligned columns, grouped digits.

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

/** Rows under their titles, each column as wide as its widest cell. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const padded = (cell: string, i: number): string =>
    columns[i]?.align === "left" ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0);
  const line = (cells: readonly string[]): string => cells.map(padded).join("  ").trimEnd();
  return [line(columns.map(({ title }) => title)), line(widths.map((width) => "─".repeat(width))), ...rows.map(line)].join("\n");
}

/** 12345.6 → "12 346". */
export function whole(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}

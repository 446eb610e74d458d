// Results as text: aligned columns for a terminal, the same with and without one.
import type { Result, Row } from "./results.js";

interface TextColumn {
  readonly title: string;
  readonly align?: "left" | "right";
}

/** Rows under their titles, each column as wide as its widest cell. */
export function table(columns: readonly TextColumn[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (columns[i]?.align === "left" ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(columns.map(({ title }) => title)), line(widths.map((width) => "─".repeat(width))), ...rows.map(line)].join("\n");
}

/** 12345.6 → "12 346", 1.234 with two digits → "1.23"; a dash for what was not measured. */
export function shown(value: number | undefined, digits: number): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  const [integer = "", fraction] = value.toFixed(digits).split(".");
  const grouped = integer.replace(/\B(?=(\d{3})+$)/g, " ");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

export function cells({ columns }: Result, row: Row): readonly string[] {
  return columns.map(({ key, digits }) => shown(row.figures[key], digits));
}

export function asText(result: Result): string {
  const columns = [{ title: "", align: "left" as const }, ...result.columns.map(({ title }) => ({ title }))];
  const rows = result.rows.map((row) => [row.name, ...cells(result, row)]);
  return `\n${result.title}\n${result.remark}\n\n${table(columns, rows)}`;
}

// What every measurement comes to, in one shape: rows of named figures under columns; how figures are made of samples;
// and the same as text for a terminal.

/** ours: Palisade. bound: no product, but the least work there is, or the most to be had. */
export type Kind = "ours" | "peer" | "bound";

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly digits: number;
}

export interface Row {
  readonly name: string;
  readonly kind: Kind;
  /** What it does for one operation. */
  readonly does: string;
  /** By the key of the column; a figure that could not be measured is absent. */
  readonly figures: Readonly<Record<string, number>>;
  /** Of each round, in the order of the rounds; empty where there was one round. */
  readonly rounds: Readonly<Record<string, readonly number[]>>;
}

export interface Result {
  /** The part, and what is measured in it: "sizes/10-kB". */
  readonly id: string;
  readonly title: string;
  readonly remark: string;
  /** By which figure the rows are compared; absent where they are not. */
  readonly compared?: "p50Us" | "perSecond";
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
}

/** Everything of one run of the benchmark. */
export interface Report {
  readonly format: 1;
  readonly command: string;
  readonly scope: string;
  readonly leftOut: readonly string[];
  readonly startedAt: string;
  readonly tookSeconds: number;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly results: readonly Result[];
}

export interface Machine {
  readonly system: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** Over one, five and fifteen minutes, at the start. */
  readonly loadAverage: readonly number[];
  /** Where processor times come from. */
  readonly processorTimes: string;
}

export function rowOf(result: Result | undefined, name: string): Row | undefined {
  return result?.rows.find((row) => row.name === name);
}

/** Of one figure of two rows, round by round; undefined where one was not measured. */
export function ratioOf(result: Result | undefined, key: string, names: readonly [string, string]): number | undefined {
  const [of, to] = names.map((name) => rowOf(result, name)?.rounds[key]);
  return of === undefined || to === undefined || of.length === 0 || to.length === 0 ? undefined : ratio(of, to);
}

/** Whether so much other work ran beside it that its times say little. */
export function isBusy({ loadAverage: [load = 0], cores }: Machine): boolean {
  return load > cores / 2;
}

/** As the file of the results: one line for each result. */
export function reportText(report: Report): string {
  const { results, ...rest } = report;
  const head = JSON.stringify(rest).slice(0, -1);
  return `${head},"results":[\n${results.map((result) => JSON.stringify(result)).join(",\n")}\n]}\n`;
}

/** Throws an error for people if the text is no file of results. */
export function parseReport(text: string): Report {
  const report = JSON.parse(text) as Partial<Report>;
  if (report.format !== 1 || !Array.isArray(report.results)) throw new TypeError("this file holds no results of the benchmark");
  return report as Report;
}

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

export function asText(result: Result): string {
  const columns = [{ title: "", align: "left" as const }, ...result.columns.map(({ title }) => ({ title }))];
  const rows = result.rows.map((row) => [row.name, ...result.columns.map(({ key, digits }) => shown(row.figures[key], digits))]);
  return `\n${result.title}\n${result.remark}\n\n${table(columns, rows)}`;
}

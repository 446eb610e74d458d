// What every measurement comes to, in one shape: rows of named figures under columns.
import { ratio } from "./statistics.js";

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

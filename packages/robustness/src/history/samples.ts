// The history of a soak: rows of values and disturbances, in memory and, as they come, in a file.
// It can be read back after a kill.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";

export type Values = Record<string, number>;

/** Every curve's value at one moment, by "panel/series". */
export interface Row {
  readonly atMs: number;
  readonly values: Readonly<Values>;
}

export interface Disturbance {
  readonly atMs: number;
  readonly what: string;
}

export interface Point {
  readonly atMs: number;
  readonly value: number;
}

export class Samples {
  readonly rows: Row[] = [];
  readonly disturbances: Disturbance[] = [];
  readonly #path: string | undefined;

  constructor(path: string | undefined, head: object) {
    this.#path = path;
    if (path !== undefined) writeFileSync(path, lineOf({ kind: "head", ...head }));
  }

  addRow(row: Row): void {
    this.rows.push(row);
    this.#write({ kind: "row", ...row });
  }

  addDisturbance(disturbance: Disturbance): void {
    this.disturbances.push(disturbance);
    this.#write({ kind: "disturbance", ...disturbance });
  }

  end(facts: object): void {
    this.#write({ kind: "end", ...facts });
  }

  /** When the last row was taken, from the start of the run. */
  get lastMs(): number {
    return this.rows.at(-1)?.atMs ?? 0;
  }

  /** The curves of a panel, by the name of the series. */
  curvesOf(panel: string): ReadonlyMap<string, readonly Point[]> {
    const curves = new Map<string, Point[]>();
    for (const { atMs, values } of this.rows) {
      for (const [key, value] of Object.entries(values)) {
        const [id, series = ""] = key.split("/");
        if (id !== panel) continue;
        const curve = curves.get(series);
        if (curve === undefined) curves.set(series, [{ atMs, value }]);
        else curve.push({ atMs, value });
      }
    }
    return new Map([...curves].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #write(object: object): void {
    if (this.#path !== undefined) appendFileSync(this.#path, lineOf(object));
  }
}

function lineOf(object: object): string {
  return `${JSON.stringify(object)}\n`;
}

/** What a soak has seen and done. */
export interface Soaked {
  readonly samples: Samples;
  readonly servers: readonly string[];
  readonly operations: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
  readonly ending: "time is over" | "interrupted";
}

type Line<Asked> =
  | { readonly kind: "head"; readonly asked: Asked; readonly servers: readonly string[] }
  | ({ readonly kind: "row" } & Row)
  | ({ readonly kind: "disturbance" } & Disturbance)
  | ({ readonly kind: "end" } & Pick<Soaked, "operations" | "failures" | "ending">);

/** An earlier run from its file. Lines that were cut short are left out. */
export function readSoak<Asked>(path: string): { readonly asked: Asked; readonly soaked: Soaked } {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => parsed<Asked>(line));
  const head = lines.find((line) => line.kind === "head");
  if (head === undefined) throw new Error(`${path} was not written by a soak`);
  const samples = new Samples(undefined, {});
  for (const line of lines) {
    if (line.kind === "row") samples.addRow(line);
    else if (line.kind === "disturbance") samples.addDisturbance(line);
  }
  const end = lines.find((line) => line.kind === "end") ?? { operations: {}, failures: {}, ending: "interrupted" as const };
  const { operations, failures, ending } = end;
  return { asked: head.asked, soaked: { samples, servers: head.servers, operations, failures, ending } };
}

function parsed<Asked>(line: string): Line<Asked>[] {
  try {
    return [JSON.parse(line) as Line<Asked>];
  } catch {
    return [];
  }
}

// What the soak has seen so far, in memory and, as it comes, in a file: an interrupted run keeps its rows. It must not judge.
import { appendFileSync, writeFileSync } from "node:fs";
import type { Point } from "../../checkers/trend.js";
import type { Disturbance } from "./disturbances.js";
import type { Row } from "./sampler.js";

export class Chronicle {
  readonly rows: Row[] = [];
  readonly disturbances: Disturbance[] = [];
  readonly #path: string | undefined;

  constructor(path: string | undefined, head: object) {
    this.#path = path;
    if (path !== undefined) writeFileSync(path, line({ kind: "head", ...head }));
  }

  addRow(row: Row): void {
    this.rows.push(row);
    this.#write({ kind: "row", ...row });
  }

  addDisturbance(disturbance: Disturbance): void {
    this.disturbances.push(disturbance);
    this.#write({ kind: "disturbance", ...disturbance });
  }

  end(words: object): void {
    this.#write({ kind: "end", ...words });
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
    if (this.#path !== undefined) appendFileSync(this.#path, line(object));
  }
}

function line(object: object): string {
  return `${JSON.stringify(object)}\n`;
}

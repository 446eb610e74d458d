// An earlier run read from its file, also one that was killed: what was recorded is judged and drawn again, without a server. Lines that were cut short are left out.
import { readFileSync } from "node:fs";
import type { Asked } from "./arguments.js";
import { Chronicle } from "./chronicle.js";
import type { Disturbance } from "./disturbances.js";
import type { Outcome } from "./run.js";
import type { Row } from "./sampler.js";

interface Head {
  readonly kind: "head";
  readonly asked: Asked;
  readonly servers: readonly string[];
}
type Ending = { readonly kind: "end" } & Pick<Outcome, "operations" | "failures" | "ending">;
type Line = Head | ({ readonly kind: "row" } & Row) | ({ readonly kind: "disturbance" } & Disturbance) | Ending;

export function readRun(path: string): { readonly asked: Asked; readonly outcome: Outcome } {
  const lines = readFileSync(path, "utf8").split("\n").flatMap(parsed);
  const head = lines.find((line) => line.kind === "head");
  if (head === undefined) throw new Error(`${path} was not written by a soak`);
  const chronicle = new Chronicle(undefined, {});
  for (const line of lines) {
    if (line.kind === "row") chronicle.addRow(line);
    else if (line.kind === "disturbance") chronicle.addDisturbance(line);
  }
  const end = lines.find((line) => line.kind === "end") ?? { operations: {}, failures: {}, ending: "interrupted" as const };
  const { operations, failures, ending } = end;
  return { asked: head.asked, outcome: { chronicle, servers: head.servers, operations, failures, ending } };
}

function parsed(line: string): Line[] {
  try {
    return [JSON.parse(line) as Line];
  } catch {
    return [];
  }
}

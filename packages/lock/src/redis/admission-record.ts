// The field `admitted` of a node's record, which the scripts cut at the same places: the run id of
// the server for which the node was admitted, the counter floor below which none of its counters is
// believed, the generation of the fleet's members that it votes in, and the incarnation. A script
// call that names the whole field as it stands need not be answered with it. In format 2 the field
// begins with a mark; format 1 has neither mark nor generation.

const RUN_ID_LENGTH = 40;
const FLOOR_LENGTH = 15;
const GENERATION_END = ":";

/** `votes`, or `closed`: it has accepted the next generation and does not vote until that opens. */
export type Mark = "votes" | "closed";

export interface AdmissionRecord {
  readonly mark: Mark;
  /** As much of the run id as the field keeps. */
  readonly runId: string;
  readonly counterFloor: number;
  /** Empty in format 1. */
  readonly generation: string;
  /** Generation and incarnation, as ballots carry them. */
  readonly incarnation: string;
}

/** A run_id in so many characters as the record keeps of it. */
export function paddedRunId(runId: string): string {
  return runId.padEnd(RUN_ID_LENGTH).slice(0, RUN_ID_LENGTH);
}

/** What the field says, or undefined if it is none. */
export function readAdmissionRecord(field: string, format: "1" | "2"): AdmissionRecord | undefined {
  const floor = field.slice(RUN_ID_LENGTH, RUN_ID_LENGTH + FLOOR_LENGTH);
  const incarnation = incarnationIn(field);
  if (incarnation === "" || !/^\d{15}$/.test(floor)) return undefined;
  const head = field.slice(0, RUN_ID_LENGTH);
  return {
    mark: format === "2" && head.startsWith("-") ? "closed" : "votes",
    runId: (format === "2" ? head.slice(1) : head).trimEnd(),
    counterFloor: Number(floor),
    generation: generationIn(incarnation),
    incarnation,
  };
}

/** Generation and incarnation, empty if the field is none. */
export function incarnationIn(field: string): string {
  return field.slice(RUN_ID_LENGTH + FLOOR_LENGTH);
}

/** The generation of an incarnation; empty in format 1. */
export function generationIn(incarnation: string): string {
  const end = incarnation.indexOf(GENERATION_END);
  return end < 0 ? "" : incarnation.slice(0, end);
}

/** The number of a generation; 0 in format 1. */
export function generationNumber(generation: string): number {
  return Number.parseInt(generation, 10) || 0;
}

// The field `admitted` of a node's record, which the scripts cut at the same places: the run id of
// the server for which the node was admitted, the counter floor below which none of its counters is
// believed, the generation of the fleet's members that it votes in, and the epoch. A script
// call that names the whole field as it stands need not be answered with it. In format 2 the field
// begins with a mark; format 1 has neither mark nor generation.

const RUN_ID_LENGTH = 40;
const FLOOR_LENGTH = 15;
const GENERATION_END = ":";

/** `votes`, or `closed`: it has accepted the next generation and does not vote until that opens. */
type Mark = "votes" | "closed";

/** What a node's vote counts by. */
export interface Vote {
  /** Empty in format 1. */
  readonly generation: string;
  /** The generation and the random word of the last admission, as ballots carry them. */
  readonly epoch: string;
}

export interface AdmissionRecord extends Vote {
  readonly mark: Mark;
  /** As much of the run id as the field keeps. */
  readonly runId: string;
  readonly counterFloor: number;
}

/** A run_id in so many characters as the record keeps of it. */
export function paddedRunId(runId: string): string {
  return runId.padEnd(RUN_ID_LENGTH).slice(0, RUN_ID_LENGTH);
}

/** What the field says, or undefined if it is none. */
export function readAdmissionRecord(field: string, format: "1" | "2"): AdmissionRecord | undefined {
  const floor = field.slice(RUN_ID_LENGTH, RUN_ID_LENGTH + FLOOR_LENGTH);
  const epoch = epochIn(field);
  if (epoch === "" || !/^\d{15}$/.test(floor)) return undefined;
  const head = field.slice(0, RUN_ID_LENGTH);
  return {
    mark: format === "2" && head.startsWith("-") ? "closed" : "votes",
    runId: (format === "2" ? head.slice(1) : head).trimEnd(),
    counterFloor: Number(floor),
    generation: generationIn(epoch),
    epoch,
  };
}

/** The epoch in the field, empty if that is none. */
export function epochIn(field: string): string {
  return field.slice(RUN_ID_LENGTH + FLOOR_LENGTH);
}

/** The generation of an epoch; empty in format 1. */
export function generationIn(epoch: string): string {
  const end = epoch.indexOf(GENERATION_END);
  return end < 0 ? "" : epoch.slice(0, end);
}

/** The number of a generation; 0 in format 1. */
export function generationNumber(generation: string): number {
  return Number.parseInt(generation, 10) || 0;
}

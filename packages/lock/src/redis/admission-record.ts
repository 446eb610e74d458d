// The field `admitted` of a node's record, which its scripts cut at the same places: in which life of the server the node's memory is believed, the base below which
// none of its counters is, and the epoch. Whoever names the whole field as it stands need not be told what it says.

const RUN_LENGTH = 40;
const BASE_LENGTH = 15;

export interface AdmissionRecord {
  readonly run: string;
  readonly base: number;
  readonly epoch: string;
}

/** A run_id in so many characters as the record keeps of it. */
export function paddedRunId(runId: string): string {
  return runId.padEnd(RUN_LENGTH).slice(0, RUN_LENGTH);
}

/** What the field says, or undefined if it is none. */
export function readAdmissionRecord(field: string): AdmissionRecord | undefined {
  const base = field.slice(RUN_LENGTH, RUN_LENGTH + BASE_LENGTH);
  const epoch = incarnationIn(field);
  if (epoch === "" || !/^\d{15}$/.test(base)) return undefined;
  return { run: field.slice(0, RUN_LENGTH).trimEnd(), base: Number(base), epoch };
}

/** The epoch alone, empty if the field is none. */
export function incarnationIn(field: string): string {
  return field.slice(RUN_LENGTH + BASE_LENGTH);
}

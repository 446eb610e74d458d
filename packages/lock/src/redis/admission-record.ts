// The field `admitted` of a node's record, which the scripts cut at the same places: the run id of
// the server for which the node was admitted, the counter floor below which none of its counters is
// believed, and the incarnation. A script call that names the whole field as it stands need not be
// answered with it.

const RUN_ID_LENGTH = 40;
const FLOOR_LENGTH = 15;

export interface AdmissionRecord {
  readonly runId: string;
  readonly counterFloor: number;
  readonly incarnation: string;
}

/** A run_id in so many characters as the record keeps of it. */
export function paddedRunId(runId: string): string {
  return runId.padEnd(RUN_ID_LENGTH).slice(0, RUN_ID_LENGTH);
}

/** What the field says, or undefined if it is none. */
export function readAdmissionRecord(field: string): AdmissionRecord | undefined {
  const floor = field.slice(RUN_ID_LENGTH, RUN_ID_LENGTH + FLOOR_LENGTH);
  const incarnation = incarnationIn(field);
  if (incarnation === "" || !/^\d{15}$/.test(floor)) return undefined;
  return { runId: field.slice(0, RUN_ID_LENGTH).trimEnd(), counterFloor: Number(floor), incarnation };
}

/** The incarnation alone, empty if the field is none. */
export function incarnationIn(field: string): string {
  return field.slice(RUN_ID_LENGTH + FLOOR_LENGTH);
}

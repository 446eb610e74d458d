// How answers of scripts look on their way back: the only place here that knows it. The Lua files say the same, and scripts.ts and node-record.ts of the lock read it.

export type Reply = number | string | null | readonly Reply[];

/** All replies of one call of requests, behind the record's field. */
export function ofCall(admitted: string, replies: readonly Reply[]): Reply {
  return [admitted, ...replies];
}

/** A single request that is answered with a number, and what was believed of the node is so. */
export const confirmed = (answer: number): Reply => answer;

/** The answer to a whole call. */
export const notBelieved: Reply = "";

/** A request that failed alone. */
export function failed(error: unknown): Reply {
  return error instanceof Error ? error.message : String(error);
}

/** A number as the scripts write it into text. */
export function digits(number: number): string {
  return number.toFixed(0);
}

export const granted = (token: number): Reply => token;
export const held = (index: number, value: string | number, leftMs: number): Reply => [index, String(value), leftMs];
export const sealed: Reply = 1;
export const notSealed: Reply = 0;
export const extended: Reply = 1;
export const missing: Reply = 0;
export const taken = (value: string | number, leftMs: number): Reply => [String(value), leftMs];
/** undefined: nothing was ours. */
export const released = (waiting: number | undefined): Reply => (waiting === undefined ? 0 : 1 + waiting);
export const seen = (value: string | number | undefined, leftMs: number, token: number): Reply => [
  value === undefined ? "" : String(value),
  leftMs,
  token,
];
export const raised = (token: number, removed: string | number | undefined): Reply => [token, removed === undefined ? "" : String(removed)];

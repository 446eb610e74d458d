// When a write is accepted: the fence, the sequence number and the condition of the request, once in
// SQL for the statement that decides, and once for the answer to a write that was refused. Both say
// the same and change together; a test compares them. Decisions are the statement's alone: what is
// read afterwards may be newer than what refused, so that a reason is a hint (G1, G3).
import type { Failure } from "../fence/failure.js";
import {
  type EtagMismatch,
  type Expected,
  type NotFound,
  type OutcomeUnknown,
  type SequenceOutOfOrder,
  type Stale,
  type Token,
  type Unavailable,
  unavailable,
  type WriteRequest,
} from "../fence/verdict.js";
import type { Reply, WriteConnection } from "../store/write-connection.js";

// Postgres evaluates it twice, for two versions of the same row:
// - The version in the statement's snapshot (`seen`, or the row that UPDATE finds), so that a
//   refusal locks nothing, writes no WAL and waits for no standby. That version may be old, and an
//   old version can justify refusing, never accepting: tokens only rise.
// - The version that is locked (`stored`: by ON CONFLICT, or by UPDATE after a concurrent change).
//   This is the one that counts (G1): it is the newest, and the row cannot change before this
//   statement commits. The fence must therefore live in this row: read from another table, it would
//   come from the snapshot, and token 34 would overwrite what token 35 wrote.
// A request expects a revision, 0 for no document, -1 for any document, or null for nothing.
export const admits = (row: "seen" | "stored", request: "request" | "excluded") => `
      ${row}.token <= ${request}.token
      and (${row}.token < ${request}.token or ${request}.seq = 0 or ${row}.seq < ${request}.seq)
      and (${request}.expected is null
        or ${request}.expected = 0 and ${row}.deleted
        or ${request}.expected in (-1, ${row}.rev) and not ${row}.deleted)
      and (${request}.op in ('put', 'seal') or not ${row}.deleted)`;

/** It raises nothing, or the lock was asked. */
export const raiseIsAllowed = (row: "seen" | "stored") => `(request.verified or request.token <= ${row}.token)`;

/** Without a row there is nothing to patch, delete or match; and a resource that has a row keeps it for ever. */
const admitsNew = "request.verified and request.op in ('put', 'seal') and coalesce(request.expected, 0) = 0";

/** The same as `admitsNew`, where a statement for one row is chosen. */
export function mayMakeRow({ request: { op, expected }, verified }: FencedRow): boolean {
  return verified && (op === "put" || op === "seal") && (expected === undefined || expected === "absent");
}

/** On the snapshot. */
export const passes = `
    case when seen.token is null
      then ${admitsNew}
      else ${raiseIsAllowed("seen")} and ${admits("seen", "request")}
    end`;

export interface FencedRow {
  readonly request: WriteRequest;
  /**
   * The lock issued the token, or tokens are not verified. Otherwise the row is accepted only where
   * it does not raise the fence.
   */
  readonly verified: boolean;
}

/**
 * A row of palisade.resources, as far as a decision depends on it. Without a row, after a recovery:
 * the floor, above which a token must be.
 */
export type StoredState = {
  readonly token: Token;
  readonly seq: number;
  readonly rev: number;
  readonly deleted: boolean;
  readonly isFloor?: boolean;
};

export type Refusal =
  | Stale
  | SequenceOutOfOrder
  | EtagMismatch
  | NotFound
  /** It would raise the fence, and the lock has not been asked yet. */
  | { readonly kind: "unverified" }
  /** This state would accept it: it lost a race and may be sent again. */
  | { readonly kind: "admissible" };

/**
 * Judges by a state that was read afterwards. Stale comes before everything; a raise is verified
 * before its conditions are looked at, so that a forged token is reported as one.
 */
export function refusalOf({ request, verified }: FencedRow, state: StoredState | undefined): Refusal {
  const { resource, token, seq } = request;
  if (state !== undefined && (state.token > token || (state.isFloor === true && state.token === token)))
    return { kind: "stale", resource, presentedToken: token, currentToken: state.token };
  if (!verified && (state === undefined || state.token < token)) return { kind: "unverified" };
  if (state?.token === token && seq !== undefined && seq <= state.seq)
    return { kind: "sequence_out_of_order", resource, currentSeq: state.seq, currentRev: state.rev };
  const currentRev = state === undefined || state.deleted ? null : state.rev;
  if (!meets(request.expected, currentRev)) return { kind: "etag_mismatch", resource, currentRev };
  if (currentRev === null && (request.op === "patch" || request.op === "delete")) return { kind: "not_found", resource };
  return { kind: "admissible" };
}

function meets(expected: Expected | undefined, currentRev: number | null): boolean {
  if (expected === undefined) return true;
  if (expected === "absent") return currentRev === null;
  if (expected === "present") return currentRev !== null;
  return currentRev === expected;
}

/** How an engine is asked about what it has refused. */
export interface Enquiry {
  explain(connection: WriteConnection, resources: readonly string[]): Promise<Explanation | { readonly failure: Failure }>;
  /** Answers when all that these rows show is replicated, as far as that was demanded; a first column false: it is not. */
  confirm(connection: WriteConnection, resources: readonly string[]): Promise<Reply>;
}

export interface Explanation {
  /** In the order of the resources; undefined where there is no row. */
  readonly states: readonly (StoredState | undefined)[];
  /** The statement finds the durability that it demands. */
  readonly isDurable: boolean;
}

interface Explained {
  /** In the order of the rows. Their refusal is certain; only the reason is asked here. */
  readonly reasons: readonly (Refusal | Unavailable | OutcomeUnknown)[];
  /** The revision of each row where one of them found its own number stored: they were applied before. */
  readonly currentRevs?: readonly number[];
}

/** Why these rows were refused. */
export async function explainRefused(enquiry: Enquiry, connection: WriteConnection, rows: readonly FencedRow[]): Promise<Explained> {
  const names = rows.map(({ request }) => request.resource);
  const found = await enquiry.explain(connection, names);
  if ("failure" in found) {
    const reason = unavailable("unreachable", found.failure.error);
    return { reasons: rows.map(() => reason) };
  }
  const { states, isDurable } = found;
  const refusals = rows.map((row, index) => refusalOf(row, states[index]));
  // From its own number a client concludes that its earlier try was stored.
  const saysStored = refusals.map(
    (refusal, index) => refusal.kind === "sequence_out_of_order" && refusal.currentSeq === rows[index]?.request.seq,
  );
  const inDoubt = await doubtOf(
    enquiry,
    connection,
    names.filter((_, index) => saysStored[index]),
  );
  const reasons = refusals.map((refusal, index): Explained["reasons"][number] => {
    if (inDoubt !== undefined && saysStored[index]) return inDoubt;
    return refusal.kind !== "admissible" || isDurable ? refusal : unavailable("not_durable");
  });
  return saysStored.includes(true) ? { reasons, currentRevs: states.map((state) => state?.rev ?? 0) } : { reasons };
}

/**
 * Makes sure that what an explanation shows would survive a failover, before a caller is told that
 * it is stored. A row can be visible without being on the synchronous standby: when the wait for it
 * was cancelled, or Postgres crashed during it. A retry that was told "stored" then would rely on a
 * write that the next failover forgets (G3). Undefined when these resources are safe as they were
 * read.
 */
async function doubtOf(enquiry: Enquiry, connection: WriteConnection, resources: readonly string[]): Promise<OutcomeUnknown | undefined> {
  if (resources.length === 0) return undefined;
  const reply = await enquiry.confirm(connection, resources);
  if ("rows" in reply) return reply.rows[0]?.[0] === false ? { kind: "outcome_unknown", reason: "not_replicated" } : undefined;
  const { failure } = reply;
  return { kind: "outcome_unknown", reason: failure.kind === "unknown" ? failure.reason : "not_replicated", cause: failure.error };
}

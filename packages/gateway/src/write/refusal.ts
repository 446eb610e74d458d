// Why a request was not accepted, asked after the statement refused it. The refusal stands; the
// reason is a hint, because what is read here may be newer than what refused.
import type { EtagMismatch, Expected, NotFound, OutcomeUnknown, SequenceOutOfOrder, Stale, Token, WriteRequest } from "../fence/verdict.js";
import type { Durability } from "../store/session.js";
import type { Reply } from "../store/write-connection.js";

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

/**
 * Judges by a state that was read afterwards. "unverified": the request would raise the fence, and
 * the lock has not been asked yet. "admissible": this state would accept it, so it lost a race and
 * may be sent again. Stale comes before everything; a raise is verified before its conditions are
 * looked at, so that a forged token is reported as one.
 */
export function refusalOf(request: WriteRequest, verified: "verified" | "unverified", state: StoredState | undefined): Refusal {
  const { resource, token, seq } = request;
  if (state !== undefined && (state.token > token || (state.isFloor === true && state.token === token)))
    return { kind: "stale", resource, presentedToken: token, currentToken: state.token };
  if (verified === "unverified" && (state === undefined || state.token < token)) return { kind: "unverified" };
  if (state?.token === token && seq !== undefined && seq <= state.seq)
    return { kind: "sequence_out_of_order", resource, currentSeq: state.seq, currentRev: state.rev };
  const currentRev = state === undefined || state.deleted ? null : state.rev;
  if (!meets(request.expected, currentRev)) return { kind: "etag_mismatch", resource, currentRev };
  if (currentRev === null && (request.op === "patch" || request.op === "delete")) return { kind: "not_found", resource };
  return { kind: "admissible" };
}

export type Refusal =
  | Stale
  | SequenceOutOfOrder
  | EtagMismatch
  | NotFound
  | { readonly kind: "unverified" }
  | { readonly kind: "admissible" };

function meets(expected: Expected | undefined, currentRev: number | null): boolean {
  if (expected === undefined) return true;
  if (expected === "absent") return currentRev === null;
  if (expected === "present") return currentRev !== null;
  return currentRev === expected;
}

export interface Explanation {
  /** In the order of the resources; undefined where there is no row. */
  readonly states: readonly (StoredState | undefined)[];
  /** The statement finds the durability that it demands. */
  readonly isDurable: boolean;
}

interface Confirmation {
  readonly durability: Durability;
  readonly ask: (resources: readonly string[]) => Promise<Reply>;
}

/**
 * Makes sure that what an explanation shows would survive a failover, before a caller is told that
 * it is stored. A row can be visible without being on the synchronous standby: when the wait for it
 * was cancelled, or Postgres crashed during it. A retry that was told "stored" then would rely on a
 * write that the next failover forgets (G3). Undefined when these resources are safe as they were
 * read.
 */
export async function confirm({ durability, ask }: Confirmation, resources: readonly string[]): Promise<OutcomeUnknown | undefined> {
  if (durability === "local" || resources.length === 0) return undefined;
  const reply = await ask(resources);
  if ("rows" in reply) return reply.rows[0]?.[0] === false ? { kind: "outcome_unknown", reason: "not_replicated" } : undefined;
  const { failure } = reply;
  return { kind: "outcome_unknown", reason: failure.kind === "unknown" ? failure.reason : "not_replicated", cause: failure.error };
}

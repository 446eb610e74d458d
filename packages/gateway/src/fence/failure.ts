// What an error of the connection or of Postgres means for the writes of the statement it ended:
// not applied, unknown, or worth running again. "Not applied" is never said of something that may
// have been committed (G3).
import { mayBeCommitted } from "@palisade/guard/gateway";
import pg from "pg";
import { type UnavailableReason, type Undecided, type UnknownReason, unavailable } from "./verdict.js";

export type Failure =
  /** Perhaps committed. Not to be run again here. */
  | { readonly kind: "unknown"; readonly reason: UnknownReason; readonly error: Error }
  /** Rolled back or never sent; running it again now would fail the same way. */
  | { readonly kind: "unavailable"; readonly reason: UnavailableReason; readonly error: Error }
  /** Rolled back because of a concurrent transaction; the same statement may pass now. */
  | { readonly kind: "retry"; readonly code: string; readonly error: Error }
  /**
   * Rolled back because of one of its rows. Each row is then run by itself, and this is the answer
   * to the one that fails alone.
   */
  | { readonly kind: "retry_alone"; readonly code: string; readonly error: Error };

const unable: readonly (readonly [RegExp, UnavailableReason])[] = [
  [/^25006$/, "read_only"],
  [/^PLS10$/, "not_recovered"],
  [/^PLS11$/, "not_durable"],
  [/^(53|42|3F|3D|28|0A)/, "refused"],
];

/** The prepared statement is gone, or was made twice (a pooler, DISCARD ALL): nothing was run. */
const notPrepared = new Set(["26000", "42P05"]);
const races = new Set(["40001", "40P01", "race"]);

/**
 * A new connection prepares the statement again. 0A000 means that only of a plan that a migration
 * has outdated; of anything else it says that this engine cannot run the statement. Messages come
 * in the server's language, the name of the routine does not.
 */
function needsNewSession({ code = "", routine }: pg.DatabaseError): boolean {
  return notPrepared.has(code) || (code === "0A000" && routine === "RevalidateCachedQuery");
}

/** For an error after the statement was handed to the socket. */
export function failureOf(error: Error): Failure {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return { kind: "unknown", reason: "connection_lost", error };
  const { code, severity } = error;
  if (mayBeCommitted({ code, severity })) return { kind: "unknown", reason: "connection_lost", error };
  if (races.has(code) || needsNewSession(error)) return { kind: "retry", code, error };
  const reason = unavailableReason(code);
  return reason === undefined ? { kind: "retry_alone", code, error } : { kind: "unavailable", reason, error };
}

/** Undefined when another statement may pass. */
export function unavailableReason(code: string): UnavailableReason | undefined {
  return unable.find(([pattern]) => pattern.test(code))?.[1];
}

/** What a writer is told of it. */
export function undecidedBy(failure: Extract<Failure, { kind: "unknown" | "unavailable" }>): Undecided {
  if (failure.kind === "unavailable") return unavailable(failure.reason, failure.error);
  return { kind: "outcome_unknown", reason: failure.reason, cause: failure.error };
}

/** Whether the session must not be used for another statement. */
export function endsSession(failure: Failure): boolean {
  if (failure.kind === "unknown") return true;
  return failure.kind === "unavailable"
    ? failure.reason === "read_only" || failure.reason === "not_recovered"
    : failure.kind === "retry" && !races.has(failure.code);
}

/**
 * For an error before anything was sent: certainly not applied. Either Postgres refused the
 * connection, or it could not be reached.
 */
export function connectFailure(error: Error): Failure {
  return { kind: "unavailable", reason: error instanceof pg.DatabaseError ? "refused" : "unreachable", error };
}

/**
 * Whether another transaction was in the way. Anything else that fails again and again will not
 * pass by being repeated.
 */
export function isRace(code: string): boolean {
  return races.has(code);
}

/** Postgres cannot store the document itself. */
export function rejectsValue(code: string): boolean {
  return /^(22|23514|54)/.test(code);
}

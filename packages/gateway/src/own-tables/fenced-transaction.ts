// A whole transaction under one or several leases: their guards first, then the caller's work, then
// COMMIT, unless a lease has ended meanwhile. Every way in which it can end says whether something
// may have been stored.
import { randomUUID } from "node:crypto";
import { mayBeCommitted } from "../fence/failure.js";
import { checkRequest, type GuardRequest, guardAll } from "./guard.js";
import { serverErrorOf } from "./server-error.js";
import { literal, type OpenTransaction, readValue } from "./statement.js";
import { inTransaction, type TransactionSource } from "./transaction-source.js";

/** The leases of @palisade/lock fit. */
export interface FencedLease extends GuardRequest {
  /** All resources of the lease, if it has more than one. */
  readonly resources?: readonly string[] | undefined;
  /** Aborts when the lease ends: nothing is committed after that. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * lease_lost: a lease ended before COMMIT was sent. transaction_failed: a statement had failed, the
 * work ignored that, and Postgres can only roll back. transaction_ended: the work itself ended the
 * transaction, so what it wrote afterwards was not guarded. outcome_unknown: no answer to COMMIT.
 */
export type FencedTransactionCode = "lease_lost" | "transaction_failed" | "transaction_ended" | "outcome_unknown";

export class FencedTransactionError extends Error {
  override readonly name = "FencedTransactionError";
  readonly code: FencedTransactionCode;
  /** `unknown`: what was written may be stored. */
  readonly outcome: "not_applied" | "unknown";

  constructor(code: FencedTransactionCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.outcome = code === "outcome_unknown" || code === "transaction_ended" ? "unknown" : "not_applied";
  }
}

/**
 * Commits what `work` did, and answers what it returned. Rolls back when a guard refuses
 * (GuardError), when `work` throws (that error), or when a lease has ended. A lost lease does not
 * end `work` early: its later statements would run outside of the transaction.
 */
export async function withFencedTransaction<Tx extends OpenTransaction, T>(
  db: TransactionSource<Tx>,
  leases: FencedLease | readonly FencedLease[],
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const list = Array.isArray(leases) ? (leases as readonly FencedLease[]) : [leases as FencedLease];
  const requests = requestsOf(list);
  checkHeld(list);
  let failure: { readonly error: unknown } | undefined;
  let done: { readonly value: T } | undefined;
  try {
    await inTransaction(db, async (tx) => {
      try {
        const value = await guarded(tx, requests, work);
        checkHeld(list);
        done = { value };
      } catch (error) {
        failure = { error };
        throw error;
      }
    });
  } catch (error) {
    // A rollback that failed as well must not hide why it was sent.
    if (failure !== undefined) throw (failure as { readonly error: unknown }).error;
    throw done === undefined ? error : commitError(error);
  }
  return (done as unknown as { readonly value: T }).value;
}

function requestsOf(leases: readonly FencedLease[]): readonly GuardRequest[] {
  const requests = leases.flatMap((lease) => (lease.resources ?? [lease.resource]).map((resource) => ({ ...guardOf(lease), resource })));
  if (requests.length === 0) throw new RangeError("withFencedTransaction needs a lease");
  for (const request of requests) checkRequest(request);
  if (new Set(requests.map(({ resource }) => resource)).size < requests.length)
    throw new TypeError("a resource may appear once among the leases of a transaction");
  return requests;
}

function guardOf({ resource, token, seq, holder, verify }: FencedLease): GuardRequest {
  return { resource, token, seq, holder, verify };
}

function checkHeld(leases: readonly FencedLease[]): void {
  const lost = leases.find(({ signal }) => signal?.aborted === true);
  if (lost === undefined) return;
  throw new FencedTransactionError("lease_lost", `the lease of ${lost.resource} with token ${lost.token} is over: nothing was committed`, {
    cause: lost.signal?.reason,
  });
}

const MARK = "palisade.fenced_transaction";

/**
 * A mark that ends with the transaction: it is gone if the work committed or rolled back by itself,
 * and cannot be read if a statement failed. Both would otherwise look like success.
 */
async function guarded<Tx extends OpenTransaction, T>(tx: Tx, requests: readonly GuardRequest[], work: (tx: Tx) => Promise<T>): Promise<T> {
  const mark = randomUUID();
  await guardAll(tx, requests, `select set_config('${MARK}', ${literal(mark)}, true)`);
  const value = await work(tx);
  if ((await readMark(tx)) === mark) return value;
  throw new FencedTransactionError(
    "transaction_ended",
    "the work ended the transaction itself: what it wrote after that was not guarded, and may be stored",
  );
}

async function readMark(tx: OpenTransaction): Promise<unknown> {
  try {
    return await readValue(tx, `select current_setting('${MARK}', true) as value`);
  } catch (error) {
    if (serverErrorOf(error)?.code !== "25P02") throw error;
    throw new FencedTransactionError("transaction_failed", "a statement of the work failed: the transaction can only be rolled back", {
      cause: error,
    });
  }
}

/** What Postgres answered to COMMIT rolled everything back, unless it ended the session. */
function commitError(error: unknown): unknown {
  const server = serverErrorOf(error);
  if (server !== undefined && !mayBeCommitted(server)) return error;
  return new FencedTransactionError("outcome_unknown", "COMMIT was sent and not answered: what was written may be stored", {
    cause: error,
  });
}

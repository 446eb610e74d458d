// A whole transaction under one or several leases: their guards first, then the caller's work, then
// COMMIT, unless a lease has ended meanwhile. Every way in which it can end says whether something
// may have been stored.
import { checkLease, checkRequest, type GuardRequest, guardCalls, guardError, guardText, verifyRaise } from "./guard.js";
import { mayBeCommitted, serverErrorOf } from "./server-error.js";
import { has, literal, type OpenTransaction } from "./statement.js";
import { inTransaction, type TransactionFailure, type TransactionSource } from "./transaction-source.js";

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
 * transaction_over: thrown to a statement that the work sent after its end, and did not wait for.
 */
export type FencedTransactionCode = "lease_lost" | "transaction_failed" | "transaction_ended" | "outcome_unknown" | "transaction_over";

/** The transaction was not committed, or it is not known whether it was. */
export class FencedTransactionError extends Error {
  override readonly name = "FencedTransactionError";
  /** How it ended. */
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
 * end `work` early. Once it has ended, its transaction takes no further statement.
 */
export async function withFencedTransaction<Tx extends OpenTransaction, T>(
  db: TransactionSource<Tx>,
  leases: FencedLease | readonly FencedLease[],
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  if (typeof leases === "function") throw new TypeError("withFencedTransaction(db, lease, work): the lease is missing");
  if (typeof work !== "function") throw new TypeError("withFencedTransaction(db, lease, work): the work is missing");
  const list = Array.isArray(leases) ? (leases as readonly FencedLease[]) : [leases as FencedLease];
  const requests = requestsOf(list);
  checkHeld(list);
  const done: T[] = [];
  const failure = await inTransaction(db, {
    first: async (tx) => {
      for (const request of requests) await verifyRaise(tx, request);
      return { text: guardText(requests), calls: guardCalls(requests) };
    },
    work: async (tx) => {
      const { lent, end } = lend(tx, late);
      try {
        done.push(await work(lent));
      } finally {
        end();
      }
      checkHeld(list);
    },
    last: lastText(requests),
  });
  if (failure !== undefined) throw errorOf(failure, requests);
  return done[0] as T;
}

const late = (): Error =>
  new FencedTransactionError(
    "transaction_over",
    "the fenced transaction is over: this statement came after its end and was not sent; await every statement in the work",
  );

/**
 * Fails if the work has committed or rolled back by itself, because then the pair is gone, and if a
 * statement had failed: Postgres would answer COMMIT with ROLLBACK, which looks like success.
 */
function lastText([request]: readonly GuardRequest[]): string {
  return `select case when palisade.holds_pair(${literal(request?.resource)}) then '' else palisade.refuse_all() end`;
}

function requestsOf(leases: readonly FencedLease[]): readonly GuardRequest[] {
  for (const lease of leases) checkLease(lease);
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

const PAIR_IS_GONE = "PLS05";
const TRANSACTION_FAILED = "25P02";

function errorOf({ stage, error: cause }: TransactionFailure, requests: readonly GuardRequest[]): unknown {
  if (stage === "begin" || stage === "first") return guardError(cause, requests);
  if (stage === "work") return cause;
  const server = serverErrorOf(cause);
  if (server?.code === PAIR_IS_GONE) {
    const message = "the work ended the transaction itself: what it wrote after that was not guarded, and may be stored";
    return new FencedTransactionError("transaction_ended", message, { cause });
  }
  if (server?.code === TRANSACTION_FAILED) {
    const message = "a statement of the work had failed: the transaction could only be rolled back";
    return new FencedTransactionError("transaction_failed", message, { cause });
  }
  // What Postgres answered to COMMIT rolled everything back, unless it ended the session.
  if (stage === "last" || (server !== undefined && !mayBeCommitted(server))) return cause;
  return new FencedTransactionError("outcome_unknown", "COMMIT was sent and not answered: what was written may be stored", { cause });
}

// What `work` gets: its transaction, for as long as it runs. pg knows no transactions, only
// connections, and drizzle asks pg: what they are sent after the end goes out of any transaction, or
// into the next one on that connection, under the guard of another resource. So a statement that
// comes late is refused here, for every library alike, before it reaches the library.

type Method = (...args: readonly unknown[]) => unknown;

/** Methods that send at once, and answer with a promise. */
const sending: ReadonlySet<PropertyKey> = new Set(["query", "execute", "raw", "$executeRawUnsafe", "$queryRawUnsafe"]);
const ofPromises = ["then", "catch", "finally"] as const;

/** The transaction, and its end, after which each of its methods refuses with `late`. */
function lend<Tx extends object>(tx: Tx, late: () => Error): { readonly lent: Tx; end(): void } {
  // What drizzle builds keeps the connection, and is sent once it is awaited: all that its
  // transaction hands out ends with it. The other libraries know that theirs is over.
  const isDeep = has(tx, "execute");
  let isOver = false;

  const borrowed = <T extends object>(target: T, name: PropertyKey = "", self?: object): T =>
    new Proxy(target, {
      get(_, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (key === "constructor" || isFixed(target, key)) return value;
        if (typeof value === "function") return borrowed(value, key, target);
        return isDeep ? lentOn(value) : value;
      },
      apply(_, __, args: readonly unknown[]) {
        if (isOver) return refused(late(), name, args);
        const result: unknown = Reflect.apply(target as unknown as Method, self, isDeep ? args.map(withLent) : args);
        return isDeep ? lentOn(result) : result;
      },
    });
  const lentOn = (value: unknown): unknown =>
    typeof value === "object" && value !== null && !(value instanceof Promise) ? borrowed(value) : value;
  /** The work of a transaction inside of this one is lent that one, too. */
  const withLent = (value: unknown): unknown => {
    if (typeof value !== "function") return value;
    return (...args: readonly unknown[]) => value(...args.map((arg) => (has(arg, "execute") ? lentOn(arg) : arg)));
  };

  return {
    lent: borrowed(tx),
    end: () => {
      isOver = true;
    },
  };
}

/** A proxy has to show such a property as it is. */
function isFixed(target: object, key: PropertyKey): boolean {
  const property = Reflect.getOwnPropertyDescriptor(target, key);
  return property?.configurable === false && property.writable === false;
}

/** Whether it is sent by a call, or built by several and then awaited: what comes of it is the error. */
function refused(error: Error, name: PropertyKey, args: readonly unknown[]): unknown {
  if (sending.has(name)) return Promise.reject(error);
  const method = ofPromises.find((one) => one === name);
  if (method !== undefined) return Reflect.apply(Promise.prototype[method], Promise.reject(error), args);
  return new Proxy(
    {},
    {
      get:
        (_, next) =>
        (...more: readonly unknown[]) =>
          refused(error, next, more),
    },
  );
}

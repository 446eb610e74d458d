// The fence inside the user's own transaction, on the user's own tables: a seal that holds until
// the transaction ends. The function palisade.guard decides in the database, and its refusal fails
// the transaction. It has to be the first statement: what was read before it may already be stale.
import { sql } from "drizzle-orm";
import pg from "pg";
import type { Token, VerifyToken } from "./fence/verdict.js";
import { checkName, checkToken } from "./fence/write-request.js";

export interface GuardRequest {
  readonly resource: string;
  readonly token: Token;
  readonly seq?: number | undefined;
  readonly holder?: string | undefined;
  /**
   * Asked when the token would raise the fence, as the gateway does; without it tokens are trusted.
   */
  readonly verify?: VerifyToken | undefined;
}

/** A pg client between BEGIN and COMMIT. */
export interface PgTransaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}
/** What drizzle passes to the callback of `db.transaction`. */
export interface DrizzleTransaction {
  execute(query: ReturnType<typeof sql>): PromiseLike<unknown>;
  rollback(): never;
}

export type GuardRefusal = "fencing_token_stale" | "sequence_out_of_order" | "fencing_token_unissued" | "verification_unavailable";

/**
 * The transaction has failed or must be rolled back. After fencing_token_stale the lease is lost
 * for good: stop, do not retry.
 */
export class GuardError extends Error {
  override readonly name = "GuardError";
  readonly code: GuardRefusal;
  readonly resource: string;
  readonly presentedToken: Token;
  /** A hint: it can only be too low. */
  readonly currentToken: Token | undefined;

  constructor(message: string, facts: Pick<GuardError, "code" | "resource" | "presentedToken" | "currentToken">, options?: ErrorOptions) {
    super(message, options);
    this.code = facts.code;
    this.resource = facts.resource;
    this.presentedToken = facts.presentedToken;
    this.currentToken = facts.currentToken;
  }
}

const refusals: Readonly<Record<string, GuardRefusal>> = { PLS01: "fencing_token_stale", PLS02: "sequence_out_of_order" };

/**
 * A stale holder's transaction fails here; a newer holder waits here until an older one's
 * transaction has ended.
 */
export async function guard(tx: PgTransaction | DrizzleTransaction, request: GuardRequest): Promise<void> {
  const { resource, token, seq, holder } = request;
  checkName(resource);
  checkToken(token);
  if (seq !== undefined) checkToken(seq);
  checkTransaction(tx);
  await verifyRaise(tx, request);
  try {
    if ("execute" in tx)
      await tx.execute(sql`select palisade.guard(${resource}, ${token}::bigint, ${seq ?? null}::bigint, ${holder ?? null})`);
    else await tx.query("select palisade.guard($1, $2::bigint, $3::bigint, $4)", [resource, token, seq ?? null, holder ?? null]);
  } catch (error) {
    throw guardError(error, request);
  }
}

/**
 * Outside a transaction the guard would hold for its own statement only, and on a pool the next
 * statement may run on another connection.
 */
function checkTransaction(tx: PgTransaction | DrizzleTransaction): void {
  if ("execute" in tx) {
    if (typeof tx.rollback !== "function")
      throw new TypeError("guard needs the transaction that db.transaction() hands out, not the database itself");
    return;
  }
  if (tx instanceof pg.Pool) throw new TypeError("guard needs a client with an open transaction, not a pool");
  const status = (tx as { readonly getTransactionStatus?: () => string | null }).getTransactionStatus?.();
  if (status === "I") throw new TypeError("guard needs an open transaction: send BEGIN first");
}

/**
 * The fence read here decides only whether to ask the lock; fences only rise, so at worst this asks
 * once too often.
 */
async function verifyRaise(tx: PgTransaction | DrizzleTransaction, { resource, token, verify }: GuardRequest): Promise<void> {
  if (verify === undefined) return;
  const answer =
    "execute" in tx
      ? await tx.execute(sql`select palisade.fence_of(${resource}) as token`)
      : await tx.query("select palisade.fence_of($1) as token", [resource]);
  const [row] = (answer as { readonly rows: readonly { readonly token: string | number | null }[] }).rows;
  if (Number(row?.token ?? 0) >= token) return;
  const issued = await verify(resource, token);
  if (issued === "issued") return;
  const facts = { resource, presentedToken: token, currentToken: undefined };
  if (issued === "unissued")
    throw new GuardError(`token ${token} for ${resource} was never issued`, { code: "fencing_token_unissued", ...facts });
  throw new GuardError(`the lock's nodes could not be asked about token ${token} for ${resource}`, {
    code: "verification_unavailable",
    ...facts,
  });
}

function guardError(error: unknown, { resource, token }: GuardRequest): unknown {
  const cause = error instanceof Error && error.cause instanceof pg.DatabaseError ? error.cause : error; // drizzle wraps it.
  const code = cause instanceof pg.DatabaseError ? refusals[cause.code ?? ""] : undefined;
  if (code === undefined || !(cause instanceof pg.DatabaseError)) return error;
  const currentToken = code === "fencing_token_stale" && cause.detail !== undefined ? Number(cause.detail) : undefined;
  return new GuardError(cause.message, { code, resource, presentedToken: token, currentToken }, { cause });
}

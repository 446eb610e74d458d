// The fence inside the user's own transaction, on the user's own tables: a seal that holds until
// the transaction ends. The function palisade.guard decides in the database, and its refusal fails
// the transaction. It has to be the first statement: what was read before it may already be stale.

import type { Token, VerifyToken } from "./checks.js";
import { checkName, checkText, checkToken, MAX_NAME_BYTES } from "./checks.js";
import { type ServerError, serverErrorOf } from "./server-error.js";
import { execute, has, literal, type OpenTransaction, readValue } from "./statement.js";

/**
 * What a transaction proves before its first read: one resource and the token that was won for it.
 */
export interface GuardRequest {
  /** The resource, or the first of a lease of several. */
  readonly resource: string;
  /** The token of the lease. */
  readonly token: Token;
  /** Position among the writes of this lease; it must rise. */
  readonly seq?: number | undefined;
  /** Kept beside the fence, for people. */
  readonly holder?: string | undefined;
  /**
   * Asked when the token would raise the fence, as the gateway does; without it tokens are trusted.
   */
  readonly verify?: VerifyToken | undefined;
}

/**
 * Why a guard refuses: a newer holder has come, the sequence number was used, the token was never
 * issued, the lock could not be asked, or no gateway has confirmed yet that the database was not
 * restored: then try again in a second.
 */
export type GuardRefusal =
  | "fencing_token_stale"
  | "sequence_out_of_order"
  | "fencing_token_unissued"
  | "verification_unavailable"
  | "not_recovered";

/**
 * The transaction has failed or must be rolled back. After fencing_token_stale the lease is lost
 * for good: stop, do not retry.
 */
export class GuardError extends Error {
  override readonly name = "GuardError";
  /** Why the guard refused. */
  readonly code: GuardRefusal;
  /** The resource that was refused. */
  readonly resource: string;
  /** The token of the call. */
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

const refusals: Readonly<Record<string, GuardRefusal>> = {
  PLS01: "fencing_token_stale",
  PLS02: "sequence_out_of_order",
  PLS10: "not_recovered",
};
const NO_TRANSACTION = "25P01";

/**
 * Raises the fence to the token and holds it until the transaction ends; call it before the first
 * read. A stale holder's transaction fails here (GuardError); a newer holder waits here until an
 * older one's transaction has ended.
 */
export async function guard(tx: OpenTransaction, request: GuardRequest): Promise<void> {
  checkRequest(request);
  try {
    await verifyRaise(tx, request);
    await execute(tx, guardText([request]));
  } catch (error) {
    throw guardError(error, [request]);
  }
}

/** A lease whose `await` was forgotten has neither a resource nor a token. */
export function checkLease(lease: unknown): void {
  if (has(lease, "then")) throw new TypeError("the lease is a Promise: write await before acquire");
  if (typeof lease !== "object" || lease === null)
    throw new TypeError(`a lease is an object with resource and token, not ${String(lease)}`);
}

export function checkRequest(request: GuardRequest): void {
  checkLease(request);
  const { resource, token, seq, holder } = request;
  checkName(resource);
  checkToken(token);
  if (seq !== undefined) checkToken(seq);
  if (holder !== undefined) checkText({ text: holder, what: "a holder", maxBytes: MAX_NAME_BYTES });
}

/**
 * The guards as expressions, in the order in which every transaction takes the resources: two
 * that need the same ones cannot deadlock.
 */
export function guardCalls(requests: readonly GuardRequest[]): readonly string[] {
  return requests
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.resource), Buffer.from(b.resource)))
    .map(({ resource, token, seq, holder }) => `palisade.guard(${literal(resource)}, ${token}, ${seq ?? "null"}, ${literal(holder)})`);
}

/**
 * The guards as one text. A savepoint is refused outside of a transaction block, also in one that
 * Postgres opens for statements sent together. So Postgres itself says whether the guard would
 * hold, before it raises anything; on a pool, or on a client without BEGIN, it would end with its
 * statement.
 */
export function guardText(requests: readonly GuardRequest[]): string {
  return ["savepoint palisade_guard", "release savepoint palisade_guard", ...guardCalls(requests).map((call) => `select ${call}`)].join(
    "; ",
  );
}

/**
 * The fence read here decides only whether to ask the lock; fences only rise, so at worst this asks
 * once too often.
 */
export async function verifyRaise(tx: OpenTransaction, { resource, token, verify }: GuardRequest): Promise<void> {
  if (verify === undefined) return;
  const fence = await readValue(tx, `select palisade.fence_of(${literal(resource)})::text as value`);
  if (Number(fence ?? 0) >= token) return;
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

/** What an error of these guards means; the error itself where it is none of theirs. */
export function guardError(error: unknown, requests: readonly GuardRequest[]): unknown {
  const server = serverErrorOf(error);
  if (server?.code === NO_TRANSACTION)
    return new TypeError("guard needs an open transaction: pass the client after BEGIN, or what the library's transaction hands out", {
      cause: error,
    });
  const setup = server === undefined ? undefined : missingSetup(server);
  if (setup !== undefined) return new Error(setup, { cause: error });
  const code = refusals[server?.code ?? ""];
  if (server === undefined || code === undefined) return error;
  const refused = requests.find(({ resource, token }) => server.message.includes(`token ${token} for ${resource} is `)) ?? requests[0];
  const currentToken = code === "fencing_token_stale" && server.detail !== undefined ? Number(server.detail) : undefined;
  return new GuardError(
    server.message,
    { code, resource: refused?.resource ?? "", presentedToken: refused?.token ?? 0, currentToken },
    { cause: error },
  );
}

export const INSTALL = "run npx @palisade/guard migrate with the DATABASE_URL of its owner, or what npx @palisade/guard sql prints";
const GRANT = "run npx @palisade/guard grant ROLE, with its name, and with the DATABASE_URL of the owner of the fences";

/** What has to be run where the fences are not there, or not for this role. */
function missingSetup({ code, message }: ServerError): string | undefined {
  if (!/\b(palisade|guard|fence_of)\b/.test(message)) return undefined;
  if (code === "3F000" || code === "42883") return `this database has no fences: ${INSTALL} (${message})`;
  if (code === "42501") return `this role may not use the fences: ${GRANT} (${message})`;
  return undefined;
}

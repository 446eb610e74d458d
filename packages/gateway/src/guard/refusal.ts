// Why a request was not accepted, asked after the statement refused it. The refusal stands; the
// reason is a hint, because what is read here may be newer than what refused.
import type {
  Accepted,
  EtagMismatch,
  Expected,
  Idempotency,
  NotFound,
  OutcomeUnknown,
  SequenceOutOfOrder,
  Stale,
  Token,
  TransactionOperation,
} from "../fence/verdict.js";
import { type Durability, durabilityDemand } from "../store/session.js";
import type { BoundStatement, Reply, Row } from "../store/write-connection.js";
import { named, type Statement } from "./fenced-statement.js";

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
export function refusalOf(request: TransactionOperation, verified: "verified" | "unverified", state: StoredState | undefined): Refusal {
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

export interface UsedKey {
  readonly fingerprint: string;
  readonly outcome: Readonly<Record<string, Omit<Accepted, "kind" | "resource" | "replayed">>>;
}

export interface Explanation {
  /** In the order of the resources; undefined where there is no row. */
  readonly states: readonly (StoredState | undefined)[];
  readonly usedKeys: ReadonlyMap<string, UsedKey>;
  /** The statement finds the durability that it demands. */
  readonly isDurable: boolean;
}

const explainFor = (durability: Durability): Statement =>
  named(
    "palisade-explain",
    `
  select coalesce(seen.token, nullif(lineage.fence_floor, 0)), seen.seq, seen.rev, coalesce(seen.deleted, true), used.key, used.fingerprint, used.outcome, ${durabilityDemand[durability]}
  from unnest($1::text[], $2::text[]) with ordinality as asked(resource, key, place) cross join palisade.lineage
  left join lateral (
    select token, seq, rev, deleted from palisade.resources as found where found.resource = asked.resource limit 1
  ) as seen on true
  left join lateral (
    select key, fingerprint, outcome from palisade.used_keys as found where found.key = asked.key limit 1
  ) as used on true
  order by place`,
  );
const EXPLAIN: Readonly<Record<Durability, Statement>> = { local: explainFor("local"), sync: explainFor("sync") };

/**
 * The answer to the first attempt with this key; undefined when the key was used for something
 * else.
 */
export function replayOf(
  { op, resource }: Pick<TransactionOperation, "op" | "resource">,
  idempotency: Idempotency | undefined,
  used: UsedKey,
): Accepted | undefined {
  const outcome = Object.hasOwn(used.outcome, resource) ? used.outcome[resource] : undefined;
  if (outcome === undefined || used.fingerprint !== idempotency?.fingerprint) return undefined;
  const { value, ...rest } = outcome;
  return { kind: "accepted", resource, ...rest, ...(op === "patch" || op === "seal" ? { value } : {}), replayed: true };
}

/** One line per resource; `keys` has the idempotency key of each, or null. */
export function explain(resources: readonly string[], keys: readonly (string | undefined)[], durability: Durability): BoundStatement {
  const literals = keys.map((key) => (key === undefined ? "null" : arrayOf([key]).slice(1, -1)));
  return { ...EXPLAIN[durability], values: [arrayOf(resources), `{${literals.join(",")}}`] };
}

export function explanationOf(rows: readonly Row[]): Explanation {
  const usedKeys = new Map<string, UsedKey>();
  for (const [, , , , key, fingerprint, outcome] of rows)
    if (typeof key === "string") usedKeys.set(key, { fingerprint: String(fingerprint), outcome: outcome as UsedKey["outcome"] });
  const states = rows.map(([token, seq, rev, deleted]) =>
    typeof token === "number" ? { token, seq: Number(seq), rev: Number(rev), deleted: deleted === true, isFloor: seq === null } : undefined,
  );
  return { states, usedKeys, isDurable: rows[0]?.[7] === true };
}

// The weakest row lock: it blocks no write and changes nothing, and its commit comes after the one
// in doubt and waits for the standby like any other.
const CONFIRM = named(
  "palisade-confirm",
  `select ${durabilityDemand.sync} from palisade.resources where resource = any($1::text[]) order by resource for key share`,
);

export function confirmation(resources: readonly string[]): BoundStatement {
  return { ...CONFIRM, values: [arrayOf(resources)] };
}

interface Confirmation {
  readonly durability: "local" | "sync";
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

export function arrayOf(texts: readonly string[]): string {
  return `{${texts.map(quoted).join(",")}}`;
}

/** An element of an array literal. Always in quotes, so that the text null stays a text. */
export function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

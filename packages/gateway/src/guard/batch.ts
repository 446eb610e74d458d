// Sends one batch on one connection and finds the answer to each of its rows: accepted, refused and
// why, unknown, or to be sent again by itself. A row that may have been applied is never sent again
// (G3).
import { type Failure, isRace, rejectsValue } from "../fence/failure.js";
import type { Accepted, WriteRequest } from "../fence/verdict.js";
import type { BoundStatement, Row, WriteConnection } from "../store/write-connection.js";
import type { WriteSlots } from "../store/write-slots.js";
import { arrayOf, parametersOf, type Statement } from "./fenced-statement.js";
import { confirm, explain, explanationOf, refusalOf, replayOf, type StoredState, type UsedKey } from "./refusal.js";
import { type Entry, isKeyed, type WriteOutcome } from "./write-queue.js";

export interface BatchParts {
  readonly slots: WriteSlots;
  readonly statements: Readonly<Record<"any" | "known", { readonly plain: Statement; readonly keyed: Statement }>>;
  readonly durability: "local" | "sync";
}

/** retry: nothing of it was applied; sent alone, it may pass. */
export type RowAnswer = WriteOutcome | Retry;
type Retry = { readonly kind: "retry"; readonly code: string; readonly cause?: Error };
export interface BatchAnswers {
  /** In the order of the batch. */
  readonly answers: readonly RowAnswer[];
  readonly outcome: "ok" | "retried" | "unavailable" | "unknown";
}

export async function sendBatch(parts: BatchParts, connection: WriteConnection, batch: readonly Entry[]): Promise<BatchAnswers> {
  const reply = await parts.slots.run(connection, statementFor(parts, batch));
  if ("rows" in reply) return { answers: await answersTo({ parts, connection, batch, rows: reply.rows }), outcome: "ok" };
  const { failure } = reply;
  const [only] = batch;
  if (failure.kind === "retry_alone" && only !== undefined && batch.length === 1)
    return { answers: [await failedAlone({ parts, connection, entry: only, failure })], outcome: "retried" };
  const answer = sharedAnswer(failure);
  return {
    answers: batch.map(() => answer),
    outcome: failure.kind === "unknown" || failure.kind === "unavailable" ? failure.kind : "retried",
  };
}

function statementFor({ statements }: BatchParts, batch: readonly Entry[]): BoundStatement {
  // A write that is sent again may have come back because its resource has no row, although it was
  // remembered to have one: the cheaper statement would miss it again.
  const { plain, keyed } = statements[batch.every(({ known, attempts }) => known && attempts === 0) ? "known" : "any"];
  const values = parametersOf(batch);
  const [first] = batch;
  if (first === undefined || !isKeyed(first)) return { ...plain, values };
  const keys = arrayOf(batch.map(({ request }) => request.idempotency?.key ?? ""));
  const fingerprints = arrayOf(batch.map(({ request }) => request.idempotency?.fingerprint ?? ""));
  return { ...keyed, values: [...values, keys, fingerprints] };
}

function sharedAnswer(failure: Failure): RowAnswer {
  const { error: cause } = failure;
  if (failure.kind === "unknown") return { kind: "outcome_unknown", reason: failure.reason, cause };
  if (failure.kind === "unavailable") return { kind: "unavailable", reason: failure.reason, outcome: "not_applied", cause };
  return { kind: "retry", code: failure.code, cause };
}

/** The answer to a row that was sent again as often as may be. */
export function afterLastTry(resource: string, { code, cause }: Retry): WriteOutcome {
  if (isRace(code)) return { kind: "contention", resource, code };
  return { kind: "unavailable", reason: "refused", outcome: "not_applied", cause };
}

interface Answered {
  readonly parts: BatchParts;
  readonly connection: WriteConnection;
  readonly batch: readonly Entry[];
  readonly rows: readonly Row[];
}

async function answersTo({ parts, connection, batch, rows }: Answered): Promise<RowAnswer[]> {
  const accepted = new Map(rows.map((row) => [row[0], row]));
  const answers = batch.map(({ request }): RowAnswer | undefined => {
    const row = accepted.get(request.resource);
    return row === undefined ? undefined : acceptedOf(request, row);
  });
  const refused = batch.filter((_, index) => answers[index] === undefined);
  if (refused.length === 0) return answers as RowAnswer[];
  const reasons = await explainRefused(parts, connection, refused);
  return answers.map((answer) => answer ?? (reasons.shift() as RowAnswer));
}

/** In the order of the refused rows. Their refusal is certain; only the reason is asked here. */
async function explainRefused(parts: BatchParts, connection: WriteConnection, refused: readonly Entry[]): Promise<RowAnswer[]> {
  const keys = refused.map(({ request }) => request.idempotency?.key);
  const names = refused.map(({ request }) => request.resource);
  const reply = await parts.slots.run(connection, explain(names, keys, parts.durability));
  if ("failure" in reply)
    return refused.map(() => ({ kind: "unavailable", reason: "unreachable", outcome: "not_applied", cause: reply.failure.error }));
  const { states, usedKeys, isDurable } = explanationOf(reply.rows);
  const reasons = refused.map((entry, index) => reasonOf(entry, states[index], usedKeys.get(keys[index] ?? "")));
  const inDoubt = await confirm(
    { ...parts, connection },
    names.filter((_, index) => saysStored(refused[index], reasons[index])),
  );
  return reasons.map((reason, index): RowAnswer => {
    if (inDoubt !== undefined && saysStored(refused[index], reason)) return inDoubt;
    if (reason.kind !== "admissible") return reason;
    return isDurable ? { kind: "retry", code: "race" } : { kind: "unavailable", reason: "not_durable", outcome: "not_applied" };
  });
}

/** From these answers a client concludes that its earlier try was stored. */
function saysStored(entry: Entry | undefined, reason: ReturnType<typeof reasonOf> | undefined): boolean {
  return reason?.kind === "accepted" || (reason?.kind === "sequence_out_of_order" && reason.currentSeq === entry?.request.seq);
}

function reasonOf(
  { request, verified }: Entry,
  state: StoredState | undefined,
  used: UsedKey | undefined,
): WriteOutcome | { readonly kind: "admissible" } {
  if (used === undefined) return refusalOf(request, verified ? "verified" : "unverified", state);
  return replayOf(request, request.idempotency, used) ?? { kind: "idempotency_key_reused" };
}

interface FailedAlone {
  readonly parts: BatchParts;
  readonly connection: WriteConnection;
  readonly entry: Entry;
  readonly failure: Extract<Failure, { kind: "retry_alone" }>;
}

async function failedAlone({ parts, connection, entry, failure: { code, error } }: FailedAlone): Promise<RowAnswer> {
  const { resource } = entry.request;
  // Another connection used the same key at the same time and committed first.
  if (code === "23505" && isKeyed(entry)) return (await explainRefused(parts, connection, [entry]))[0] as RowAnswer;
  if (code === "55P03") return { kind: "contention", resource, code };
  if (rejectsValue(code)) return { kind: "value_rejected", resource, message: error.message };
  return { kind: "unavailable", reason: "refused", outcome: "not_applied", cause: error };
}

export function acceptedOf({ op, resource, token }: Pick<WriteRequest, "op" | "resource" | "token">, row: Row): Accepted {
  const [, rev, created, deleted, value] = row;
  const shown = op === "patch" || op === "seal" ? { value: value as string | null } : {};
  return {
    kind: "accepted",
    resource,
    rev: Number(rev),
    token,
    created: created === true,
    deleted: deleted === true,
    ...shown,
    replayed: false,
  };
}

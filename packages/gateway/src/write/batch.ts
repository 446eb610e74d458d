// Sends one batch on one connection and finds the answer to each of its writes: accepted, refused
// and why, unknown, or to be sent again by itself. A write that may have been applied is never sent
// again (G3).

import { type Failure, isRace, rejectsValue } from "../fence/failure.js";
import { type Accepted, TooLarge, type WriteRequest } from "../fence/verdict.js";
import { type HeldRows, LOCK_TIMED_OUT } from "../store/slots.js";
import type { Row, WriteConnection } from "../store/write-connection.js";
import { confirm, type Refusal, refusalOf } from "./refusal.js";
import type { FencedWrites } from "./statement.js";
import { type Entry, type Way, type WriteOutcome, writesOf } from "./write-queue.js";

export interface BatchParts {
  readonly writes: { readonly current: FencedWrites };
  readonly durability: "local" | "sync";
  readonly heldRows: HeldRows;
}

interface Sending {
  readonly connection: WriteConnection;
  readonly batch: readonly Entry[];
}

/** retry: nothing of it was applied; sent that way, it may pass. */
export type RowAnswer = WriteOutcome | Retry;
type Retry = { readonly kind: "retry"; readonly code: string; readonly way: Way; readonly cause?: Error };
interface BatchAnswers {
  /** In the order of `writesOf` the batch. */
  readonly answers: readonly RowAnswer[];
  readonly outcome: "ok" | "retried" | "unavailable" | "unknown";
}

export async function sendBatch(parts: BatchParts, sending: Sending): Promise<BatchAnswers> {
  const { connection, batch } = sending;
  const reply = await parts.writes.current.each(connection, batch);
  if ("rows" in reply) return { answers: await answersTo({ parts, connection, batch, rows: reply.rows }), outcome: "ok" };
  const { failure } = reply;
  if (failure.kind === "retry_alone") {
    const [only] = batch;
    const answers =
      only !== undefined && batch.length === 1 && only.fold.length === 0
        ? [await failedAlone({ parts, sending, entry: only, failure })]
        : await failedTogether(parts, sending, failure.code);
    return { answers, outcome: "retried" };
  }
  const answer = sharedAnswer(failure);
  return { answers: writesOf(batch).map(() => answer), outcome: failure.kind === "retry" ? "retried" : failure.kind };
}

function sharedAnswer(failure: Exclude<Failure, { readonly kind: "retry_alone" }>): RowAnswer {
  const { error: cause } = failure;
  if (failure.kind === "unknown") return { kind: "outcome_unknown", reason: failure.reason, cause };
  if (failure.kind === "unavailable") return { kind: "unavailable", reason: failure.reason, outcome: "not_applied", cause };
  return { kind: "retry", code: failure.code, way: "alone", cause };
}

/** The answer to a row that was sent again as often as may be. */
export function afterLastTry(resource: string, { code, cause }: Retry): WriteOutcome {
  if (isRace(code)) return { kind: "contention", resource, code };
  return { kind: "unavailable", reason: "refused", outcome: "not_applied", cause };
}

/** One of the rows failed the others. Which one is known only of held rows. */
async function failedTogether({ writes }: BatchParts, { connection, batch }: Sending, code: string): Promise<RowAnswer[]> {
  const names = batch.map(({ request }) => request.resource);
  const held = code === LOCK_TIMED_OUT ? await writes.current.held(connection, names) : [];
  const way = held?.length === 0 ? "alone" : "batch";
  return writesOf(batch).map(({ request: { resource } }) =>
    held?.includes(resource) ? { kind: "contention", resource, code } : { kind: "retry", code, way },
  );
}

interface Answered {
  readonly parts: BatchParts;
  readonly connection: WriteConnection;
  readonly batch: readonly Entry[];
  readonly rows: readonly Row[];
}

async function answersTo({ parts, connection, batch, rows }: Answered): Promise<RowAnswer[]> {
  const accepted = new Map(rows.map((row) => [row[0], row]));
  const refused = batch.filter(({ request }) => !accepted.has(request.resource));
  const reasons = refused.length === 0 ? [] : await explainRefused(parts, connection, refused);
  return batch.flatMap((entry): readonly RowAnswer[] => {
    const row = accepted.get(entry.request.resource);
    const writes = entry.fold.length === 0 ? [entry] : writesOf([entry]);
    if (row !== undefined) return writes.map(({ request }, index) => acceptedOf(request, row, writes.length - 1 - index));
    // What refuses one write of a fold refuses each: they ask for the same token and nothing else.
    const reason = reasons.shift() as RowAnswer;
    return writes.map(() => reason);
  });
}

/** In the order of the refused rows. Their refusal is certain; only the reason is asked here. */
async function explainRefused(parts: BatchParts, connection: WriteConnection, refused: readonly Entry[]): Promise<RowAnswer[]> {
  const names = refused.map(({ request }) => request.resource);
  const found = await parts.writes.current.explain(connection, names);
  if ("failure" in found)
    return refused.map(() => ({ kind: "unavailable", reason: "unreachable", outcome: "not_applied", cause: found.failure.error }));
  const { states, isDurable } = found;
  const reasons = refused.map(({ request, verified }, index) => refusalOf(request, verified ? "verified" : "unverified", states[index]));
  const inDoubt = await confirm(
    { durability: parts.durability, ask: (resources) => parts.writes.current.confirm(connection, resources) },
    names.filter((_, index) => saysStored(refused[index], reasons[index])),
  );
  return reasons.map((reason, index): RowAnswer => {
    if (inDoubt !== undefined && saysStored(refused[index], reason)) return inDoubt;
    if (reason.kind !== "admissible") return reason;
    return isDurable
      ? { kind: "retry", code: "race", way: "alone" }
      : { kind: "unavailable", reason: "not_durable", outcome: "not_applied" };
  });
}

/** From this answer a client concludes that its earlier try was stored. */
function saysStored(entry: Entry | undefined, reason: Refusal | undefined): boolean {
  return reason?.kind === "sequence_out_of_order" && reason.currentSeq === entry?.request.seq;
}

interface FailedAlone {
  readonly parts: BatchParts;
  readonly sending: Sending;
  readonly entry: Entry;
  readonly failure: Extract<Failure, { kind: "retry_alone" }>;
}

async function failedAlone({ parts, sending, entry, failure: { code, error } }: FailedAlone): Promise<RowAnswer> {
  const { connection } = sending;
  const { resource } = entry.request;
  // The database was recovered, and the token is not above the floor of resources without a row.
  if (code === "PLS01") return (await explainRefused(parts, connection, [entry]))[0] as RowAnswer;
  if (code === LOCK_TIMED_OUT) return { kind: "contention", resource, code };
  parts.heldRows.mark(resource, "failed"); // In a batch, the next write of its resource could fail others.
  if (error instanceof TooLarge) return error.refusal;
  if (rejectsValue(code)) return { kind: "value_rejected", resource, message: error.message };
  return { kind: "unavailable", reason: "refused", outcome: "not_applied", cause: error };
}

/** `later` writes of the same row came after this one. */
export function acceptedOf({ op, resource, token }: Pick<WriteRequest, "op" | "resource" | "token">, row: Row, later = 0): Accepted {
  const [, newest, born, deleted, value] = row;
  const rev = Number(newest) - later;
  const shown = op === "patch" || op === "seal" ? { value: value as string | null } : {};
  return {
    kind: "accepted",
    resource,
    rev,
    token,
    created: op === "put" && Number(born) === rev,
    deleted: deleted === true,
    ...shown,
  };
}

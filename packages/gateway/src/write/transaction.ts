// Several writes, all or nothing: the statement of a single write with one more clause, which fails
// it when a row was refused. Decides how often a lost race is run again, and which operations were
// refused.

import { type Failure, isRace, rejectsValue, undecidedBy } from "../fence/failure.js";
import {
  type Refused,
  TooLarge,
  type TransactionRequest,
  type TransactionVerdict,
  type Undecided,
  unavailable,
  type WriteRequest,
} from "../fence/verdict.js";
import { type Held, type Line, LOCK_TIMED_OUT } from "../store/slots.js";
import type { Reply, Row, WriteConnection } from "../store/write-connection.js";
import { explainRefused } from "./condition.js";
import { acceptedOf } from "./group-commit.js";
import type { FencedWrites } from "./plain-writes.js";
import { ANSWER_TOO_LARGE } from "./statement.js";

export interface TransactionParts {
  readonly line: Line;
  readonly writes: { readonly current: FencedWrites };
  readonly observe: (event: { readonly kind: "retried"; readonly code: string; readonly rows: number }) => void;
}

type TransactionAnswer =
  | TransactionVerdict
  /** These would raise a fence and were not verified. */
  | { readonly kind: "unverified"; readonly operations: readonly WriteRequest[] };

type Retry = { readonly kind: "retry"; readonly code: string; readonly cause?: Error };

const MAX_ATTEMPTS = 8;

export class Transactions {
  readonly #parts: TransactionParts;

  constructor(parts: TransactionParts) {
    this.#parts = parts;
  }

  async run(request: TransactionRequest, knowledge: Knowledge): Promise<TransactionAnswer> {
    const { operations } = request;
    const names = operations.map(({ resource }) => resource);
    const answer = await this.#parts.line.use(names, (connection) => this.#attempts({ request, ...knowledge, connection }));
    return answer.kind === "held" ? contention(operations, LOCK_TIMED_OUT) : answer;
  }

  async #attempts(attempt: Attempt): Promise<TransactionAnswer | Held> {
    for (let attempts = 1; ; attempts += 1) {
      const answer = await this.#attempt(attempt, attempts === 1 && isLikely(attempt));
      if (answer.kind !== "retry") return answer;
      const { operations } = attempt.request;
      this.#parts.observe({ kind: "retried", code: answer.code, rows: operations.length });
      if (attempts === MAX_ATTEMPTS)
        return isRace(answer.code) ? contention(operations, answer.code) : unavailable("refused", answer.cause);
    }
  }

  async #attempt(attempt: Attempt, isLikely: boolean): Promise<TransactionAnswer | Held | Retry> {
    const { request, isVerified, connection } = attempt;
    const sorted = [...request.operations].sort((a, b) => (a.resource < b.resource ? -1 : 1));
    const rows = sorted.map((operation) => ({ request: operation, verified: isVerified(operation) }));
    const reply = await this.#parts.writes.current.all(connection, rows, isLikely);
    if ("failure" in reply) return await this.#failed(attempt, reply.failure);
    if (reply.rows.length === 0) return await this.#explain(attempt);
    const byName = new Map<unknown, Row>(reply.rows.map((row) => [row[0], row]));
    const results = request.operations.map((operation) => {
      const row = byName.get(operation.resource);
      if (row === undefined) throw new Error(`invariant: a committed transaction wrote ${reply.rows.length} of ${byName.size} rows`);
      return acceptedOf(operation, row);
    });
    return { kind: "committed", results };
  }

  async #failed(attempt: Attempt, failure: Failure): Promise<TransactionAnswer | Held | Retry> {
    const { operations } = attempt.request;
    if (failure.kind === "unknown" || failure.kind === "unavailable") return undecidedBy(failure);
    if (failure.kind === "retry") return { kind: "retry", code: failure.code, cause: failure.error };
    const { code, error } = failure;
    // Refused by the statement's own clause after a row was refused under its lock.
    if (code === "PLS05" || code === "PLS01") return await this.#explain(attempt);
    if (code === LOCK_TIMED_OUT) return { kind: "held", rows: await this.#heldRows(attempt) };
    if (code === ANSWER_TOO_LARGE) {
      const index = operations.findIndex(({ op }) => op === "seal");
      const { resource = "" } = operations[index] ?? {};
      return { kind: "refused", refusals: [{ index, refusal: { kind: "answer_too_large", resource } }] };
    }
    if (error instanceof TooLarge) {
      const { refusal } = error;
      return { kind: "refused", refusals: [{ index: operations.findIndex(({ resource }) => resource === refusal.resource), refusal }] };
    }
    if (rejectsValue(code)) return await this.#findRejected(attempt, error.message);
    return unavailable("refused", error);
  }

  async #heldRows({ request: { operations }, connection }: Attempt): Promise<readonly string[]> {
    const names = operations.map(({ resource }) => resource);
    return names.length === 1 ? names : ((await this.#parts.writes.current.held(connection, names)) ?? []);
  }

  async #explain({ request: { operations }, isVerified, connection }: Attempt): Promise<TransactionAnswer | Retry> {
    const rows = operations.map((operation) => ({ request: operation, verified: isVerified(operation) }));
    const { reasons, currentRevs } = await explainRefused(this.#parts.writes.current, connection, rows);
    const unverified: WriteRequest[] = [];
    const refusals: { readonly index: number; readonly refusal: Refused }[] = [];
    let undecided: Undecided | undefined;
    for (const [index, operation] of operations.entries()) {
      const reason = reasons[index] as (typeof reasons)[number];
      if (reason.kind === "outcome_unknown") return reason;
      if (reason.kind === "unavailable") undecided = reason;
      else if (reason.kind === "unverified") unverified.push(operation);
      else if (reason.kind !== "admissible") refusals.push({ index, refusal: reason });
    }
    if (refusals.length > 0) return { kind: "refused", refusals, currentRevs };
    if (unverified.length > 0) return { kind: "unverified", operations: unverified };
    return undecided ?? { kind: "retry", code: "race" };
  }

  /**
   * Which document Postgres cannot take. Each is parsed by itself; a patch may also fail while it
   * is merged, and then the first document is reported.
   */
  async #findRejected({ request, connection }: Attempt, message: string): Promise<TransactionAnswer> {
    const documents = [...request.operations.entries()].filter(([, operation]) => operation.value !== undefined);
    for (const [index, { resource, value }] of documents) {
      const reply: Reply = await connection.run({
        name: "palisade-read-document",
        text: "select $1::jsonb is null",
        values: [value ?? null],
      });
      if (!("failure" in reply)) continue;
      const { failure } = reply;
      if (failure.kind === "retry_alone") return rejected(index, resource, failure.error.message);
      return unavailable("unreachable", failure.error);
    }
    const [first] = documents;
    return rejected(first?.[0] ?? 0, first?.[1].resource ?? request.operations[0]?.resource ?? "", message);
  }
}

/** What this process remembers of resources. */
interface Knowledge {
  readonly isVerified: (operation: WriteRequest) => boolean;
  /** Its resource has a row whose fence stands at its token, as last heard. */
  readonly isStored: (operation: WriteRequest) => boolean;
}

interface Attempt extends Knowledge {
  readonly request: TransactionRequest;
  readonly connection: WriteConnection;
}

/** Nothing but a fence that another gateway has raised since can refuse it. */
function isLikely({ request: { operations }, isStored }: Attempt): boolean {
  return operations.every(
    (operation) =>
      (operation.op === "put" || operation.op === "seal") &&
      operation.seq === undefined &&
      operation.expected === undefined &&
      isStored(operation),
  );
}

function rejected(index: number, resource: string, message: string): TransactionAnswer {
  return { kind: "refused", refusals: [{ index, refusal: { kind: "value_rejected", resource, message } }] };
}

function contention(operations: readonly WriteRequest[], code: string): TransactionAnswer {
  return {
    kind: "refused",
    refusals: operations.map(({ resource }, index) => ({ index, refusal: { kind: "contention", resource, code } })),
  };
}

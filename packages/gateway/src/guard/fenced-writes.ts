// How fenced writes are put to an engine: the statements, and what is asked around them. Decisions
// about retries and answers are made by the callers, and are the same for every engine.
import type { Failure } from "../fence/failure.js";
import type { Idempotency } from "../fence/verdict.js";
import type { Reply, WriteConnection } from "../store/write-connection.js";
import type { FencedRow } from "./fenced-statement.js";
import type { Explanation } from "./refusal.js";
import type { Entry } from "./write-queue.js";

export interface Asked {
  readonly resources: readonly string[];
  /** Of each resource, the idempotency key of its write. */
  readonly keys: readonly (string | undefined)[];
}

/** What holds for all rows of a transaction. */
export interface Whole {
  readonly idempotency: Idempotency | undefined;
  /**
   * Each row is there and most likely admits its write: it need not be looked at before any is
   * written. A refusal then locks rows and writes WAL until it undoes both (docs/adr/0111).
   */
  readonly isLikely: boolean;
}

export interface FencedWrites {
  /** Each row by itself. Answers resource, revision, born, deleted and value of the accepted. */
  each(connection: WriteConnection, batch: readonly Entry[]): Promise<Reply>;
  /** All rows or none, sorted by name; no row is answered where one was refused. */
  all(connection: WriteConnection, rows: readonly FencedRow[], whole: Whole): Promise<Reply>;
  explain(connection: WriteConnection, asked: Asked): Promise<Explanation | { readonly failure: Failure }>;
  /** Answers when all that these rows show is replicated; a first column false: it is not. */
  confirm(connection: WriteConnection, resources: readonly string[]): Promise<Reply>;
  /** Which rows other sessions hold; undefined when that cannot be found out. */
  held(connection: WriteConnection, resources: readonly string[]): Promise<readonly string[] | undefined>;
  /** Runs every statement without an effect; why one cannot run. */
  rehearse(connection: WriteConnection): Promise<string | undefined>;
}

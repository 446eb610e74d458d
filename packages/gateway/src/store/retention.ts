// Forgets idempotency keys and entries of the history when their time is over, as fast as they
// come. The gateway's role has no right to delete; functions of the schema's owner delete these and
// nothing else, a bounded number at a time. Several gateways may run it at once.
import { type SQL, sql } from "drizzle-orm";
import type { ReadPool } from "./read-pool.js";
import type { StoreLimits } from "./store-limits.js";

interface RetentionParts {
  readonly pool: ReadPool;
  readonly limits: Pick<StoreLimits, "idempotencyRetentionMs" | "historyRetentionMs" | "refusedRetentionMs" | "refusedRows">;
  /** Whether writes that are refused are kept. */
  readonly refusedLog: "off" | "on";
  readonly onError: (error: Error) => void;
}

/** A few tenths of a second of deleting. */
const MAX_AT_ONCE = 10_000;
const MAX_PAUSE_MS = 10_000;

export function forgetOld({ pool, limits, refusedLog, onError }: RetentionParts): { stop(): void } {
  const olderThan = (retentionMs: number): SQL => sql`pg_catalog.make_interval(secs => ${retentionMs / 1_000})`;
  const { idempotencyRetentionMs, historyRetentionMs, refusedRetentionMs, refusedRows } = limits;
  const tasks = [
    repeated(
      { pool, retentionMs: idempotencyRetentionMs, onError },
      sql`select palisade.forget_used_keys(${olderThan(idempotencyRetentionMs)}, ${MAX_AT_ONCE}) as forgotten`,
    ),
    repeated(
      { pool, retentionMs: historyRetentionMs, onError },
      sql`select palisade.forget_history(${olderThan(historyRetentionMs)}, ${MAX_AT_ONCE}) as forgotten`,
    ),
  ];
  if (refusedLog === "on")
    tasks.push(
      repeated(
        { pool, retentionMs: refusedRetentionMs, onError },
        sql`select palisade.forget_refusals(${olderThan(refusedRetentionMs)}, ${refusedRows}, ${MAX_AT_ONCE}) as forgotten`,
      ),
    );
  return {
    stop: () => {
      for (const task of tasks) task.stop();
    },
  };
}

interface Task {
  readonly pool: ReadPool;
  readonly retentionMs: number;
  readonly onError: (error: Error) => void;
}

/** At once again while there is more, otherwise after a pause. */
function repeated({ pool, retentionMs, onError }: Task, statement: SQL): { stop(): void } {
  const pauseMs = Math.min(MAX_PAUSE_MS, retentionMs / 20);
  let stopped = false;
  let timer = later(pauseMs);
  function later(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => void forget(), delayMs).unref();
  }
  async function forget(): Promise<void> {
    const result = await pool.read((db) => db.execute<{ readonly forgotten: number }>(statement));
    if (stopped) return;
    const failed = "kind" in result;
    if (failed && result.reason === "refused" && result.cause !== undefined) onError(result.cause);
    timer = later(!failed && result.rows[0]?.forgotten === MAX_AT_ONCE ? 0 : pauseMs);
  }
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

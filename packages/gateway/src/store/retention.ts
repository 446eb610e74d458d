// Forgets entries of the history when their time is over, as fast as they come. The gateway's role
// has no right to delete; a function of the schema's owner deletes these and nothing else, a bounded
// number at a time. Several gateways may run it at once.
import { sql } from "drizzle-orm";
import type { ReadPool } from "./reads.js";

interface Retention {
  readonly pool: ReadPool;
  readonly historyRetentionMs: number;
  readonly onError: (error: Error) => void;
}

/** A few tenths of a second of deleting. */
const MAX_AT_ONCE = 10_000;
const MAX_PAUSE_MS = 10_000;

/** At once again while there is more, otherwise after a pause. */
export function forgetOld({ pool, historyRetentionMs, onError }: Retention): { stop(): void } {
  const olderThan = sql`pg_catalog.make_interval(secs => ${historyRetentionMs / 1_000})`;
  const statement = sql`select palisade.forget_history(${olderThan}, ${MAX_AT_ONCE}) as forgotten`;
  const pauseMs = Math.min(MAX_PAUSE_MS, historyRetentionMs / 20);
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

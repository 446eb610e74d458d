// Forgets idempotency keys older than their retention, a bounded number at a time. The gateway's
// role has no right to delete; a function of the schema's owner deletes used keys and nothing else.
// Several gateways may run it at once.
import { sql } from "drizzle-orm";
import type { ReadPool } from "./read-pool.js";

export interface Retention {
  readonly pool: ReadPool;
  readonly retentionMs: number;
  readonly onError: (error: Error) => void;
}

const MAX_FORGOTTEN_AT_ONCE = 5_000;
const MAX_INTERVAL_MS = 60_000;

export function forgetUsedKeys({ pool, retentionMs, onError }: Retention): { stop(): void } {
  const forget = async (): Promise<void> => {
    const result = await pool.read((db) =>
      db.execute(sql`select palisade.forget_used_keys(pg_catalog.make_interval(secs => ${retentionMs / 1_000}), ${MAX_FORGOTTEN_AT_ONCE})`),
    );
    if ("kind" in result && result.reason === "refused" && result.cause !== undefined) onError(result.cause);
  };
  const timer = setInterval(() => void forget(), Math.min(MAX_INTERVAL_MS, retentionMs / 10));
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

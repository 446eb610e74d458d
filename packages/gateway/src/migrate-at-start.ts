// Looks at the database at start and brings its schema up to date. Waits for Postgres, so that a
// gateway and its database may be started together. Errors that waiting cannot mend end the start.
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "./observe/log.js";
import { EngineError } from "./store/engine.js";
import { demandFitDatabase, migrate } from "./store/migrate.js";

const PAUSE_MS = 1_000;
// Postgres does not listen yet, is still starting up (57P03), is short of connections (53300), or
// waits for its promotion (25006).
const passing = new Set(["ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "57P03", "53300", "25006"]);

interface Wait {
  readonly maxWaitMs?: number;
  /** Aborts when the gateway is to end: then this ends, and the schema may be as it was. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Ends the start on a database that no gateway may write to. A standby may be promoted, and is
 * waited for.
 */
export async function bringUpToDate(databaseUrl: string, log: Log, wait: Wait = {}): Promise<void> {
  await onceThere(log, wait, async () => {
    await demandFitDatabase(databaseUrl);
    const { applied } = await migrate(databaseUrl);
    if (applied.length > 0) log.info({ applied }, "the schema was brought up to date");
  });
}

/**
 * For a gateway that does not migrate, which starts while Postgres is away, silent or a standby: it
 * is not ready until that has passed.
 */
export async function refuseUnfitDatabase(databaseUrl: string, timeoutMs: number): Promise<void> {
  try {
    await demandFitDatabase(databaseUrl, timeoutMs);
  } catch (error) {
    if (error instanceof EngineError && !isPassing(error)) throw error;
  }
}

async function onceThere(log: Log, { maxWaitMs = 30_000, signal }: Wait, work: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const waitedMs = performance.now() - startedAt;
      if (!isPassing(error)) throw error;
      if (waitedMs > maxWaitMs)
        throw new Error(`Postgres was not there within ${(waitedMs / 1_000).toFixed(1)} s: ${reasonOf(error)}`, { cause: error });
      log.warn({ code: codeOf(error), reason: reasonOf(error) }, "Postgres is not there yet");
      // A wait that was cut short has nothing more to say.
      await sleep(Math.min(PAUSE_MS, maxWaitMs), undefined, { signal }).catch(() => undefined);
      if (signal?.aborted === true) throw error;
    }
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && passing.has(code);
}

/** The code of an error or of what caused it. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  return code !== undefined && passing.has(code) ? code : (codeOf(error.cause) ?? code);
}

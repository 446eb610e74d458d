// Brings the schema up to date at start, and waits for Postgres, so that a gateway and its database
// may be started together. Errors that waiting cannot mend end the start.
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "./observe/log.js";
import { migrate } from "./store/migrate.js";

const PAUSE_MS = 1_000;
// Postgres does not listen yet, is still starting up (57P03), is short of connections (53300), or
// waits for its promotion (25006).
const passing = new Set(["ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "57P03", "53300", "25006"]);

interface Wait {
  readonly maxWaitMs?: number;
  /** Aborts when the gateway is to end: then this ends, and the schema may be as it was. */
  readonly signal?: AbortSignal | undefined;
}

export async function bringUpToDate(databaseUrl: string, log: Log, { maxWaitMs = 30_000, signal }: Wait = {}): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    try {
      const { applied } = await migrate(databaseUrl);
      if (applied.length > 0) log.info({ applied }, "the schema was brought up to date");
      return;
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

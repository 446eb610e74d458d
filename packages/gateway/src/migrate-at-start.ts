// Brings the schema up to date at start, and waits for Postgres, so that a gateway and its database
// may be started together. Errors that waiting cannot mend end the start.
import type { Log } from "./observe/log.js";
import { migrate } from "./store/migrate.js";

const MAX_WAIT_MS = 30_000;
const PAUSE_MS = 250;
// Postgres does not listen yet, is still starting up (57P03), is short of connections (53300), or
// waits for its promotion (25006).
const passing = new Set(["ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "57P03", "53300", "25006"]);

export async function bringUpToDate(databaseUrl: string, log: Log): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    try {
      const { applied } = await migrate(databaseUrl);
      if (applied.length > 0) log.info({ applied }, "the schema was brought up to date");
      return;
    } catch (error) {
      if (!isPassing(error) || performance.now() - startedAt > MAX_WAIT_MS) throw error;
      log.warn({ code: codeOf(error), reason: error instanceof Error ? error.message : undefined }, "Postgres is not there yet");
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
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

// Refuses a database on which no gateway may start, before the first write: what is so, and what to
// do.
import type pg from "pg";
import { EngineError, engineOf } from "./engine.js";
import { withClient } from "./with-client.js";

/** The versions of Citus that `npm run citus` has passed on. */
const TRIED_CITUS = ["13.2"];

/**
 * Throws EngineError, or what the connection failed with. `timeoutMs`: for the connection and for
 * each answer.
 */
export async function demandFitDatabase(databaseUrl: string, timeoutMs?: number): Promise<void> {
  const look = async (client: pg.Client): Promise<void> => {
    const { rows } = await client.query<{ standby: boolean }>("select pg_catalog.pg_is_in_recovery() as standby");
    if (rows[0]?.standby === true)
      throw passing(
        `${client.host}:${client.port} is a standby, which takes no writes: DATABASE_URL must name the primary, or all hosts of which one is`,
      );
    const engine = await engineOf(async (text) => (await client.query<Record<string, unknown>>(text)).rows);
    if (engine.kind === "plain") return;
    const release = engine.version.replace(/-.*/, "");
    if (!TRIED_CITUS.includes(release))
      throw new EngineError(
        `the tables are distributed by Citus ${release}, with which this version was never tried: use ${TRIED_CITUS.join(" or ")} (docs/citus.md)`,
      );
  };
  await withClient(databaseUrl, look, timeoutMs);
}

/** With the code of a server that cannot write: it passes when a standby is promoted. */
function passing(message: string): EngineError {
  return Object.assign(new EngineError(message), { code: "25006" });
}

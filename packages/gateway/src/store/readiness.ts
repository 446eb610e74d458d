// Whether this database can keep what the gateway promises, as a list of checks for the operator.
// These checks decide readiness only. Writes are refused elsewhere: a session that must not be
// written through is refused when it is opened (session.ts), and the statement itself refuses when
// synchronous replication is switched off later.
import { pendingMigrations } from "@palisade/guard/schema";
import { sql } from "drizzle-orm";
import type { Engine } from "./engine.js";
import { type ReadPool, rowsOf } from "./read-pool.js";
import type { RestoreCheck } from "./restore-check.js";
import type { Durability } from "./session.js";

export type ReadinessCheck = { readonly name: string; readonly status: "ok" | "warning" | "failed"; readonly detail: string };
/** ready is false when any check failed. Warnings name risks that the operator has accepted. */
export type Readiness = { readonly ready: boolean; readonly checks: readonly ReadinessCheck[] };

const facts = sql`
  select
    pg_is_in_recovery() as standby,
    current_setting('transaction_read_only') = 'on' as read_only,
    current_setting('fsync') = 'on' as fsync,
    current_setting('synchronous_standby_names') as standby_names,
    current_setting('server_encoding') as encoding,
    -- Null where this role may not see it (it takes pg_read_all_stats).
    (select count(*) filter (where sync_state in ('sync', 'quorum')) from pg_stat_replication
      where pg_catalog.pg_has_role('pg_read_all_stats', 'usage')) as synchronous,
    pg_catalog.pg_has_role('pg_read_all_stats', 'usage') as sees_replication,
    pg_catalog.has_table_privilege(pg_catalog.to_regclass('palisade.resources'), 'delete') or pg_catalog.has_table_privilege(pg_catalog.to_regclass('palisade.resources'), 'truncate') as may_delete`;

interface Facts {
  readonly standby: boolean;
  readonly read_only: boolean;
  readonly fsync: boolean;
  readonly standby_names: string;
  readonly encoding: string;
  readonly synchronous: string | null;
  readonly sees_replication: boolean;
  readonly may_delete: boolean | null;
}

interface ReadinessParts {
  readonly pool: ReadPool;
  readonly durability: Durability;
  readonly verify: "on" | "off";
  readonly restoreCheck: RestoreCheck | undefined;
  readonly engine: Engine | undefined;
  /** Why it is not one that is written through. */
  readonly engineFault: string | undefined;
  /** Why a statement of the store cannot be run here; undefined when all were. */
  readonly statementFault: () => Promise<string | undefined>;
}

export async function readiness({
  pool,
  durability,
  verify,
  restoreCheck,
  engine,
  engineFault,
  statementFault,
}: ReadinessParts): Promise<Readiness> {
  const startedAt = performance.now();
  const found = await pool.read(async (db) => {
    const { rows } = await db.execute<Record<string, unknown>>(facts);
    const query = async (text: string) => ({ rows: (await db.execute<Record<string, unknown>>(sql.raw(text))).rows });
    const schema = await pendingMigrations({ query }).catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    return { facts: rows[0] as unknown as Facts, schema, tookMs: performance.now() - startedAt };
  });
  if ("kind" in found) return judged([check("database", "failed", `no answer (${found.reason}): ${found.cause?.message ?? "none"}`)]);
  const { facts: seen, schema, tookMs } = found;
  const lost = await restoreCheck?.pulse();
  const fault = await statementFault();
  const ofCitus =
    engine?.kind === "citus"
      ? [
          check("engine", "ok", `Citus ${engine.version}: ${engine.shards.count} shards`),
          { name: "workers", ...(await workerReadiness(pool, durability)) },
        ]
      : [];
  return judged([
    check("database", "ok", `answers in ${tookMs.toFixed(1)} ms`),
    schemaCheck(schema),
    seen.encoding === "UTF8"
      ? check("encoding", "ok", "UTF8")
      : check("encoding", "failed", `${seen.encoding}: names and documents need UTF8`),
    seen.standby || seen.read_only ? check("writable", "failed", "this server is a standby or read-only") : check("writable", "ok", "yes"),
    fault === undefined
      ? check("statements", "ok", "each was run once, without rows")
      : check("statements", "failed", `this database cannot run ${fault}`),
    lost === undefined
      ? check("restore", "ok", restoreCheck === undefined ? "not looked for: no lock nodes are configured" : "none since the last beat")
      : check("restore", "failed", `this database may lack fences: ${lost}`),
    // The rows are the workers' to keep; the coordinator keeps where they are.
    durabilityCheck(seen, durability),
    ...(engineFault === undefined ? ofCitus : [check("engine", "failed", engineFault)]),
    seen.fsync
      ? check("fsync", "ok", "on")
      : check("fsync", "warning", "off: a crash of the machine may lose acknowledged writes and fences"),
    seen.may_delete === true
      ? check("rights", "warning", "this role may delete fences; see the grants of palisade_gateway")
      : check("rights", "ok", "this role cannot delete fences"),
    verify === "on"
      ? check("tokens", "ok", "verified with the lock")
      : check("tokens", "warning", "taken on trust: no lock nodes are configured"),
  ]);
}

function schemaCheck(pending: readonly string[] | Error): ReadinessCheck {
  if (pending instanceof Error) return check("schema", "failed", `not up to date: ${pending.message}`);
  return pending.length > 0 ? check("schema", "failed", `not up to date: ${pending.join(", ")}`) : check("schema", "ok", "up to date");
}

function durabilityCheck(seen: Facts, durability: Durability): ReadinessCheck {
  if (durability === "local")
    return check("durability", "warning", "local: a failover to a standby may forget acknowledged writes and fences");
  if (seen.standby_names === "")
    return check("durability", "failed", "sync was asked for, but synchronous_standby_names is empty; writes are refused");
  if (!seen.sees_replication)
    return check("durability", "ok", `sync: waits for ${seen.standby_names} (this role may not see whether it is connected)`);
  if (seen.synchronous === null || Number(seen.synchronous) === 0)
    return check("durability", "failed", `sync: no synchronous standby of ${seen.standby_names} is connected; writes would wait for ever`);
  return check("durability", "ok", `sync: ${seen.synchronous} synchronous standby connected for ${seen.standby_names}`);
}

function check(name: string, status: ReadinessCheck["status"], detail: string): ReadinessCheck {
  return { name, status, detail };
}

function judged(checks: readonly ReadinessCheck[]): Readiness {
  return { ready: checks.every(({ status }) => status !== "failed"), checks };
}

// Whether the workers of Citus commit as durably as the gateway demands: what the coordinator says
// of itself says nothing of them. A worker that is away or waits for its standby stops the writes
// of its own shards; the gateway stays ready for those of the others.

const ASK = `
  select nodename || ':' || nodeport as place, success, result from run_command_on_workers($asked$
    select pg_catalog.json_build_object(
      'commits', current_setting('synchronous_commit'), 'names', current_setting('synchronous_standby_names'), 'fsync', current_setting('fsync'),
      'synchronous', (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')),
      'sees', pg_catalog.pg_has_role('pg_read_all_stats', 'usage'))
  $asked$)`;

interface Told {
  readonly commits: string;
  readonly names: string;
  readonly fsync: string;
  readonly synchronous: number;
  readonly sees: boolean;
}

/** Failed where no worker can be written to. */
async function workerReadiness(pool: ReadPool, durability: Durability): Promise<Omit<ReadinessCheck, "name">> {
  const found = await pool.read((db) => rowsOf(db, ASK));
  if ("kind" in found) return { status: "warning", detail: `could not be asked (${found.reason}): ${found.cause?.message ?? "none"}` };
  const told = found.map(({ place, success, result }): Finding => {
    const finding = success === true ? findingOf(JSON.parse(String(result)) as Told, durability) : away(String(result));
    return { ...finding, detail: `${String(place)} ${finding.detail}` };
  });
  const worse = told.filter(({ writes }) => writes !== "well");
  if (worse.length === 0) return { status: "ok", detail: told.map(({ detail }) => detail).join("; ") };
  const status = told.every(({ writes }) => writes === "none") ? "failed" : "warning";
  return { status, detail: worse.map(({ detail }) => detail).join("; ") };
}

interface Finding {
  /** none: what it keeps cannot be written. */
  readonly writes: "well" | "at risk" | "none";
  readonly detail: string;
}

const away = (why: string): Finding => ({ writes: "none", detail: `does not answer: ${why}` });

function findingOf({ commits, names, fsync, synchronous, sees }: Told, durability: Durability): Finding {
  if (durability === "sync" && names === "")
    return { writes: "none", detail: "has no synchronous_standby_names: writes of its shards are refused" };
  if (durability === "sync" && sees && synchronous === 0)
    return {
      writes: "none",
      detail: `waits for ${names}, and no synchronous standby is connected: writes of its shards would wait for ever`,
    };
  // Sessions of the gateway set it; others rest on it.
  if (commits === "off") return { writes: "at risk", detail: "commits without waiting for the disk (synchronous_commit off)" };
  if (fsync !== "on") return { writes: "at risk", detail: "has fsync off: a crash of its machine may lose acknowledged writes and fences" };
  return { writes: "well", detail: durability === "sync" ? `waits for ${names}` : "answers" };
}

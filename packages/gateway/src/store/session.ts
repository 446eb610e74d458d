// What every connection that writes is told before its first write, and whether it may be written
// through. The settings are part of the promise, so they are set here instead of being left to the
// server's configuration. A connection of a pooler is shared with other clients: nothing is set on
// it, and every statement brings the settings with it, for its own transaction.
import type { Failure } from "../fence/failure.js";

/**
 * local: an acknowledged write survives a crash of the machine. sync: it also survives the loss of
 * the machine, because a synchronous standby has it.
 */
export type Durability = "local" | "sync";

export interface SessionLimits {
  readonly batchLockWaitMs: number;
  readonly statementTimeoutMs: number;
}

const settings = (lasts: "session" | "transaction"): string => {
  const local = lasts === "transaction";
  return `${promised(local)},
    -- The plan is made once, perhaps while the table is empty, and must still look up by key when it is large.
    set_config('plan_cache_mode', 'force_generic_plan', ${local}),
    set_config('enable_seqscan', 'off', ${local}),
    -- And rows are reached in the order of the request, which is the order in which they are locked.
    set_config('enable_hashjoin', 'off', ${local}),
    set_config('enable_mergejoin', 'off', ${local}),
    -- What was switched off above counts as a high cost, and Postgres would compile the statement for it: up to a second.
    set_config('jit', 'off', ${local})`;
};

const promised = (local: boolean): string => `
    -- A function that a user made elsewhere must not be taken for one of Postgres.
    set_config('search_path', 'pg_catalog, pg_temp', ${local}),
    -- G3: an acknowledged write survives a crash. remote_apply is stronger and stays; anything weaker is lifted.
    set_config('synchronous_commit', case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, ${local}),
    -- Another open transaction may hold a row; the batch must not wait for it without end.
    set_config('lock_timeout', $1, ${local}),
    -- Shorter than the gateway's timer, so that Postgres can say "not applied" before the gateway has to say "unknown".
    set_config('statement_timeout', $2, ${local})`;

/** For the transaction of one statement behind a pooler; in the same round trip. */
export const TRANSACTION_SETTINGS = {
  plain: `select ${settings("transaction")}`,
  citus: `select ${promised(true)}, set_config('datestyle', 'ISO', true)`,
} as const;

/**
 * For a session whose tables Citus distributes, after OPEN_SESSION. A plan for no worker in
 * particular is none, a plan for a worker is that worker's choice; and only warnings come as
 * notices.
 * Times go to the workers as text, in the style of the session.
 */
export const OPEN_CITUS_SESSION = `select
  set_config('plan_cache_mode', 'auto', false), set_config('enable_seqscan', 'on', false), set_config('enable_hashjoin', 'on', false),
  set_config('enable_mergejoin', 'on', false), set_config('client_min_messages', 'warning', false),
  set_config('datestyle', 'ISO', false)`;

/** A transaction on plain Postgres, whatever its default is. */
export const BEGIN = "begin isolation level read committed";

/**
 * A transaction on distributed tables. What is set by SET LOCAL goes to each worker that takes
 * part, and no other setting does: palisade.tell_workers sets it so.
 */
export const beginOnWorkers = (
  { batchLockWaitMs, statementTimeoutMs }: SessionLimits,
  { appliesRemotely, leastBeat }: { readonly appliesRemotely: boolean; readonly leastBeat: string | null },
): string =>
  `begin; select palisade.tell_workers(${batchLockWaitMs}, ${statementTimeoutMs}, '${appliesRemotely ? "remote_apply" : "on"}', ${leastBeat})`;

export const COMMIT = {
  plain: "commit",
  // While it commits, Citus lowers what the workers say to the level of debugging, the warning that
  // a wait for a standby was cancelled included.
  citus: "select pg_catalog.set_config('client_min_messages', 'debug1', true); commit",
} as const;

/**
 * One round trip: set everything, and report what cannot be set. $3 is the process that this client
 * was told at connecting to belong to. A pooler tells an invented one, or none, and then nothing
 * is set.
 */
export const OPEN_SESSION = `
  select
    way.is_pooled as "isPooled",
    pg_is_in_recovery() as "inRecovery",
    current_setting('transaction_read_only') = 'on' as "readOnly",
    current_setting('synchronous_standby_names') as "synchronousStandbyNames",
    current_setting('synchronous_commit') = 'remote_apply' as "appliesRemotely",
    exists (select from pg_catalog.pg_extension where extname = 'citus') as "hasCitus"
  from (select pg_backend_pid() is distinct from $3::integer as is_pooled) as way
  left join lateral (
    select
      -- The statement relies on it: a stricter level would answer every lost race with 40001.
      set_config('default_transaction_isolation', 'read committed', false),${settings("session")}
    where not way.is_pooled
  ) as told on true`;

/** What it answers. */
export interface SessionReport {
  /** A pooler stands between. */
  readonly isPooled: boolean;
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
  readonly synchronousStandbyNames: string;
  /** The extension is there; whether its tables are distributed is another question. */
  readonly hasCitus: boolean;
  readonly appliesRemotely: boolean;
}

const SUCCESS = "00000";
/** Of RAISE in a function of the user. */
const RAISED = "exec_stmt_raise";

/**
 * Whether a notice says that a commit may not be where it must be. When the wait for the
 * synchronous standby is cancelled, the commit still succeeds, and a WARNING is the only trace. Its
 * text and severity come in the server's language; the name of the routine and the code do not. Of
 * a worker of Citus it comes by another routine, as does the word that a worker has not committed:
 * there, every code but that of success tells a warning, whatever its level.
 */
export function leavesDoubt(
  { routine, code }: { routine?: string | undefined; code?: string | undefined },
  engine?: "plain" | "citus",
): boolean {
  return routine === "SyncRepWaitForLSN" || (engine === "citus" && code !== SUCCESS && routine !== RAISED);
}

export function sessionParameters({ batchLockWaitMs, statementTimeoutMs }: SessionLimits): string[] {
  return [String(batchLockWaitMs), String(statementTimeoutMs)];
}

/**
 * What a statement demands of its own transaction, in SQL: a setting that was made before it may
 * have been made on another connection, or taken back.
 */
export const durabilityDemand: Readonly<Record<Durability, string>> = {
  local: "current_setting('synchronous_commit') <> 'off'",
  sync: "current_setting('synchronous_standby_names') <> '' and current_setting('synchronous_commit') in ('on', 'remote_apply')",
};

/** The beat of this database; null where its lineage was not written by Palisade. */
export const BEAT = "(select beat from palisade.lineage where written_by = lineage.xmin)";

/**
 * That the database has the beat of this parameter, which is null where nobody asks; otherwise it was
 * restored, and the statement fails. Demanded by the statement and not of its connection, under
 * which a dump can be loaded or a pooler can go over to another server.
 */
export const beatDemand = (parameter: number): string =>
  `case when $${parameter}::bigint is null or ${BEAT} >= $${parameter}::bigint then true else palisade.demand_beat($${parameter}::bigint) end`;

/** Why this session cannot be written through; undefined when it can. */
export function sessionFault(
  { inRecovery, readOnly, synchronousStandbyNames }: SessionReport,
  durability: Durability,
): Failure | undefined {
  if (inRecovery || readOnly)
    return { kind: "unavailable", reason: "read_only", error: new Error("this server is a standby or read-only") };
  if (durability === "local" || synchronousStandbyNames !== "") return undefined;
  const error = new Error("durability is sync, but synchronous_standby_names is empty: a failover could forget a fence");
  return { kind: "unavailable", reason: "not_durable", error };
}

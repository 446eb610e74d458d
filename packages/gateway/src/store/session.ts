// What every connection that writes is told before its first write, and what it must find. It decides whether a session may be written through; the settings below
// are part of the promise, so they are set here and not left to whoever configured the server.

/** local: one machine; what it acknowledges survives a crash of it. sync: also its loss, because a synchronous standby has every acknowledged write. */
export type Durability = "local" | "sync";

export interface SessionLimits {
  readonly lockWaitMs: number;
  readonly statementTimeoutMs: number;
}

export interface SessionReport {
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
  readonly synchronousStandbyNames: string;
}

/** One round trip: set everything, and report what cannot be set. */
export const OPEN_SESSION = `
  select
    -- G3: an acknowledged write survives a crash. remote_apply is stronger and stays; anything weaker is lifted.
    set_config('synchronous_commit', case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, false),
    -- The statement relies on it: a stricter level would answer every lost race with 40001.
    set_config('default_transaction_isolation', 'read committed', false),
    -- Somebody's open transaction may hold a row; the batch must not wait for it until the end of days.
    set_config('lock_timeout', $1, false),
    -- Shorter than our own timer, so that Postgres says "not applied" before we have to say "unknown".
    set_config('statement_timeout', $2, false),
    -- The plan is made once, perhaps while the table is empty, and must still be the look-up by key when it has grown a hundredfold.
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('enable_seqscan', 'off', false),
    -- And rows are reached in the order of the request, which is the order in which they are locked.
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    pg_is_in_recovery() as in_recovery,
    current_setting('transaction_read_only') = 'on' as read_only,
    current_setting('synchronous_standby_names') as synchronous_standby_names`;

export function sessionParameters({ lockWaitMs, statementTimeoutMs }: SessionLimits): string[] {
  return [String(lockWaitMs), String(statementTimeoutMs)];
}

export function sessionReport(row: Readonly<Record<string, unknown>>): SessionReport {
  return {
    inRecovery: row.in_recovery === true,
    readOnly: row.read_only === true,
    synchronousStandbyNames: String(row.synchronous_standby_names),
  };
}

/** Why this session must not be written through; undefined when it may. */
export function sessionFault(
  report: SessionReport,
  durability: Durability,
): { readonly reason: "read_only" | "not_durable"; readonly message: string } | undefined {
  if (report.inRecovery || report.readOnly) return { reason: "read_only", message: "this server is a standby or read-only" };
  if (durability === "sync" && report.synchronousStandbyNames === "")
    return {
      reason: "not_durable",
      message: "durability is sync, but synchronous_standby_names is empty: a failover could forget a fence",
    };
  return undefined;
}

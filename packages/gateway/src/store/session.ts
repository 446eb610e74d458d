// What every connection that writes is told before its first write, and whether it may be written
// through. The settings are part of the promise, so they are set here instead of being left to the
// server's configuration.

/**
 * local: an acknowledged write survives a crash of the machine. sync: it also survives the loss of
 * the machine, because a synchronous standby has it.
 */
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
    -- Another open transaction may hold a row; the batch must not wait for it without end.
    set_config('lock_timeout', $1, false),
    -- Shorter than the gateway's timer, so that Postgres can say "not applied" before the gateway has to say "unknown".
    set_config('statement_timeout', $2, false),
    -- The plan is made once, perhaps while the table is empty, and must still look up by key when it is large.
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

/** Why this session cannot be written through; undefined when it can. */
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

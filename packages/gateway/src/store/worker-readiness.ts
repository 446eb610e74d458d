// Whether the workers of Citus commit as durably as the gateway demands: what the coordinator says
// of itself says nothing of them. A worker that is away or waits for its standby stops the writes
// of its own shards; the gateway stays ready for those of the others.
import { type ReadPool, rowsOf } from "./read-pool.js";
import type { Durability } from "./session.js";

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

interface WorkerReadiness {
  readonly status: "ok" | "warning" | "failed";
  readonly detail: string;
}

/** Failed where no worker can be written to. */
export async function workerReadiness(pool: ReadPool, durability: Durability): Promise<WorkerReadiness> {
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

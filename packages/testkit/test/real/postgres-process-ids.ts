// The processes of a Postgres server, for tests about what becomes of them. It says that it accepts
// connections before the last of its lasting helpers has started, so a count waits for them.
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";

/** The first four are there in every version that is supported. */
const lasting = ["checkpointer", "background writer", "walwriter", "autovacuum launcher"];

const processes = `select pid, coalesce(backend_type, '') as kind from pg_stat_activity where pid <> pg_backend_pid()
  union all select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int, 'postmaster'`;

const DEADLINE_MS = 10_000;

/** The postmaster and everything below it, except for the asking session. */
export async function processIds(client: pg.Client): Promise<number[]> {
  const giveUpAt = performance.now() + DEADLINE_MS;
  for (;;) {
    const { rows } = await client.query<{ pid: number; kind: string }>(processes);
    const missing = lasting.filter((kind) => !rows.some((row) => row.kind === kind));
    if (missing.length === 0) return rows.map((row) => row.pid);
    if (performance.now() > giveUpAt) throw new Error(`after ${DEADLINE_MS} ms the server is still without ${missing.join(", ")}`);
    await delay(5);
  }
}

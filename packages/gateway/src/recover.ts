// After a restore: raises the fences of the database to what the lock's nodes know, in one
// transaction, so that no token that was ever accepted before is below a fence that it had raised
// (G7). For an operator, as the owner of the schema.
import type { Fleet } from "@palisade/lock";
import pg from "pg";
import { isName } from "./fence/verdict.js";
import { EngineError, engineOf } from "./store/engine.js";
import { markOf } from "./store/restore-check.js";

interface RecoverRequest {
  readonly databaseUrl: string;
  readonly lock: Pick<Fleet, "listResources" | "highestToken" | "mark">;
  /** Kept with the recovery. */
  readonly by: string;
  readonly reason: string;
  /** nothing: the operator knows that no acknowledged write is missing, and fences stay. */
  readonly lost: "unknown" | "nothing";
}

interface Recovery {
  /** Fences that were raised, of how many resources. */
  readonly raised: number;
  readonly resources: number;
  /** A resource that the database does not know accepts only tokens above it. */
  readonly fenceFloor: number;
}

const NO_FLOOR =
  "the tables are distributed by Citus, where no trigger can keep the floor of names that have no row: raise the fences of the names that you know, and then recover with --nothing-lost";
const NAMES_AT_ONCE = 500;
const RAISE = `
  select count(*) filter (where moved.changed)::integer as raised
  from unnest($1::text[], $2::bigint[]) as known(resource, token)
  cross join lateral palisade.move_fence('raise', known.resource, known.token, $3, $4) as moved`;
const REFUSE_BELOW_FLOOR = `create trigger refuse_below_floor before insert on palisade.resources
  for each row execute function palisade.refuse_below_floor()`;

export async function recover(request: RecoverRequest): Promise<Recovery> {
  const client = new pg.Client({ connectionString: request.databaseUrl, application_name: "palisade-recover" });
  client.on("error", () => {}); // A lost connection also rejects the statement that waits on it.
  await client.connect();
  try {
    await client.query("begin isolation level read committed");
    // No gateway counts a beat meanwhile, and of two recoveries one waits.
    const { rows } = await client.query<{ id: string; beat: string; fence_floor: string }>("select * from palisade.lineage for update");
    const [lineage] = rows;
    if (lineage === undefined) throw new Error("palisade.lineage has no row: run npx @palisade/gateway migrate");
    const engine = await engineOf(async (text) => (await client.query(text)).rows);
    if (engine.kind === "citus" && request.lost === "unknown") throw new EngineError(NO_FLOOR);
    const remembered = await request.lock.mark(markOf(lineage.id), 0);
    const beat = Math.max(remembered, Number(lineage.beat)) + 1;
    const recovery =
      request.lost === "unknown"
        ? await raiseFences(client, request)
        : { raised: 0, resources: 0, fenceFloor: Number(lineage.fence_floor) };
    await conclude(client, request, { ...recovery, beat });
    await client.query("commit");
    await request.lock.mark(markOf(lineage.id), beat);
    return recovery;
  } finally {
    await client.end();
  }
}

async function raiseFences(client: pg.Client, { lock, by, reason }: RecoverRequest): Promise<Recovery> {
  await client.query("drop trigger if exists refuse_below_floor on palisade.resources");
  // The highest token of any resource. Asked first: what is leased from now on has a counter, or a
  // token above this one.
  const fenceFloor = await lock.highestToken();
  const { rows } = await client.query<{ resource: string }>("select resource from palisade.resources");
  const names = [...new Set([...rows.map(({ resource }) => resource), ...(await lock.listResources()).filter(isName)])].sort();
  let raised = 0;
  for (let start = 0; start < names.length; start += NAMES_AT_ONCE) {
    const some = names.slice(start, start + NAMES_AT_ONCE);
    const tokens = await Promise.all(some.map((name) => lock.highestToken(name)));
    const known = some.flatMap((name, index) => ((tokens[index] ?? 0) > 0 ? [{ name, token: tokens[index] }] : []));
    const values = [known.map(({ name }) => name), known.map(({ token }) => token), by, reason];
    raised += (await client.query<{ raised: number }>(RAISE, values)).rows[0]?.raised ?? 0;
  }
  await client.query(REFUSE_BELOW_FLOOR);
  return { raised, resources: names.length, fenceFloor };
}

async function conclude(client: pg.Client, { by, reason }: RecoverRequest, done: Recovery & { readonly beat: number }): Promise<void> {
  const { beat, fenceFloor, raised } = done;
  await client.query(
    `update palisade.lineage set beat = $1, written_by = pg_current_xact_id()::xid, fence_floor = greatest(fence_floor, $2),
      system_identifier = (select system_identifier from pg_control_system()),
      confirmed_start = case when confirmed_start is not null then pg_postmaster_start_time() end,
      confirmed_database = (select oid::bigint from pg_database where datname = current_database())`,
    [beat, fenceFloor],
  );
  await client.query("insert into palisade.recoveries (beat, fence_floor, raised, recovered_by, reason) values ($1, $2, $3, $4, $5)", [
    beat,
    fenceFloor,
    raised,
    by,
    reason,
  ]);
}

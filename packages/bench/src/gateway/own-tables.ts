// What the fence adds to a transaction on tables of the user's own: the guard in front of it, and
// the trigger of a fenced table. With and without take turns over one connection.
import { hrtime } from "node:process";
import { withFencedTransaction } from "@palisade/guard";
import { connectTo } from "@palisade/testkit";
import type pg from "pg";
import type { Contestant } from "../measure/comparison.js";
import type { Context } from "../measure/part.js";
import { type GatewayBench, pidsOf } from "./gateway-bench.js";

const ROWS = 1_000;

const columns =
  "(id integer primary key, owner text not null, balance integer not null, note jsonb not null, changed timestamptz not null)";
const rows = `select i, 'somebody', 0, '{"n":1}', now() from generate_series(1, ${ROWS}) i`;

async function prepare(client: pg.Client): Promise<void> {
  await client.query(`create table plain_accounts ${columns}; create table fenced_accounts ${columns};
    create table entries (id bigint generated always as identity primary key, account integer, amount integer);
    insert into plain_accounts ${rows}; insert into fenced_accounts ${rows};
    insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at)
      select 'bench/' || i, 7, 0, 0, 0, 'seal', true, now() from generate_series(1, ${ROWS}) i;
    select palisade.fence_table('fenced_accounts', 'bench/', 'id'); analyze`);
}

let last = 0;
const nextId = (): number => {
  last = (last % ROWS) + 1;
  return last;
};
const guardOf = (id: number): string => `select palisade.guard('bench/${id}', 7)`;
const named = (name: string, text: string) => (values: unknown[]) => ({ name, text, values });
const read = named("read", "select balance from plain_accounts where id = $1");
const write = named("write", "update plain_accounts set balance = balance + 1, changed = now() where id = $1");
const record = named("record", "insert into entries (account, amount) values ($1, 1)");

async function readWriteRecord(client: pg.Client, id: number): Promise<void> {
  await client.query(read([id]));
  await client.query(write([id]));
  await client.query(record([id]));
}

function fencedTransaction(client: pg.Client): Promise<number> {
  const id = nextId();
  return microseconds(() =>
    withFencedTransaction(client, { resource: `bench/${id}`, token: 7 }, (tx: pg.Client) => readWriteRecord(tx, id)),
  );
}

function threeStatements(client: pg.Client, begin: (id: number) => readonly string[]): Promise<number> {
  const id = nextId();
  return microseconds(async () => {
    for (const text of begin(id)) await client.query(text);
    await readWriteRecord(client, id);
    await client.query("commit");
  });
}

/** Either ends with the update's answer or with the commit; both tables have the same guard. */
async function singleUpdate(client: pg.Client, name: "plain_accounts" | "fenced_accounts", until: "update" | "commit"): Promise<number> {
  const id = nextId();
  const update = named(`update ${name}`, `update ${name} set balance = balance + 1, changed = now() where id = $1`);
  await client.query(`begin; ${guardOf(id)}`);
  const updating = microseconds(() => client.query(update([id])));
  if (until === "commit") return (await updating) + (await microseconds(() => client.query("commit")));
  const took = await updating;
  await client.query("commit");
  return took;
}

type Way = readonly [name: string, once: (client: pg.Client) => Promise<number>];

const transactions: readonly Way[] = [
  ["begin, read, update, insert, commit", (client) => threeStatements(client, () => ["begin"])],
  ["guard sent with begin", (client) => threeStatements(client, (id) => [`begin; ${guardOf(id)}`])],
  ["withFencedTransaction", fencedTransaction],
  ["guard in a round trip of its own", (client) => threeStatements(client, (id) => ["begin", guardOf(id)])],
];
const updates = (until: "update" | "commit"): readonly Way[] => [
  ["plain table", (client) => singleUpdate(client, "plain_accounts", until)],
  ["fenced table", (client) => singleUpdate(client, "fenced_accounts", until)],
];
const chapters: Readonly<Record<string, { readonly title: string; readonly ways: readonly Way[] }>> = {
  transaction: { title: "A transaction of three statements on the user's own tables", ways: transactions },
  update: { title: "An update of one row of the user's own tables, until its answer", ways: updates("update") },
  commit: { title: "An update of one row of the user's own tables, until the commit", ways: updates("commit") },
};

export async function measureOwnTables(bench: GatewayBench, context: Context): Promise<void> {
  context.progress.begin("The fence on the user's own tables");
  const { databaseUrl } = await bench.group("palisade");
  await using client = await connectTo(databaseUrl);
  await prepare(client);
  for (const [id, { title, ways }] of Object.entries(chapters)) {
    const contestants = ways.map((way) => overOneConnection(bench, client, way));
    const effort = context.effort({ rounds: 20, seconds: 0.1 });
    const remark = "one connection, commits on disk";
    await context.compare({ id: `own-tables/${id}`, title, remark, effort, contestants, compared: "p50Us" });
  }
}

function overOneConnection({ postgres }: GatewayBench, client: pg.Client, [name, once]: Way): Contestant {
  return {
    name,
    does: "over one connection",
    kind: "ours",
    processes: { client: () => [process.pid], postgres: () => pidsOf(postgres) },
    async round(seconds) {
      const latenciesUs: number[] = [];
      const startedAt = performance.now();
      const until = startedAt + seconds * 1_000;
      do latenciesUs.push(await once(client));
      while (performance.now() < until);
      return { operations: latenciesUs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesUs };
    },
  };
}

async function microseconds(work: () => Promise<unknown>): Promise<number> {
  const startedAt = hrtime.bigint();
  await work();
  return Number(hrtime.bigint() - startedAt) / 1_000;
}

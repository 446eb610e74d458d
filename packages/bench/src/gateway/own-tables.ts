// What the fence adds to a transaction on tables of the user's own: the guard in front of it, and
// the trigger of a fenced table. With and without take turns over one connection.
import { hrtime } from "node:process";
import { withFencedTransaction } from "@palisade/guard";
import pg from "pg";
import { ratio } from "../measure/statistics.js";
import { fixed, heading, median, progress, progressEnded, table } from "../report.js";
import type { ComparedServers } from "./compared-servers.js";

const ROUNDS = 60;
const EACH = 20;
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

async function fencedTransaction(client: pg.Client): Promise<number> {
  const id = nextId();
  const startedAt = hrtime.bigint();
  await withFencedTransaction(client, { resource: `bench/${id}`, token: 7 }, (tx: pg.Client) => readWriteRecord(tx, id));
  return Number(hrtime.bigint() - startedAt) / 1_000;
}

async function threeStatements(client: pg.Client, begin: (id: number) => readonly string[]): Promise<number> {
  const id = nextId();
  const startedAt = hrtime.bigint();
  for (const text of begin(id)) await client.query(text);
  await readWriteRecord(client, id);
  await client.query("commit");
  return Number(hrtime.bigint() - startedAt) / 1_000;
}

/** Either ends with the update's answer or with the commit; both tables have the same guard. */
async function singleUpdate(client: pg.Client, name: "plain_accounts" | "fenced_accounts", until: "update" | "commit"): Promise<number> {
  const id = nextId();
  const update = named(`update ${name}`, `update ${name} set balance = balance + 1, changed = now() where id = $1`);
  await client.query(`begin; ${guardOf(id)}`);
  const startedAt = hrtime.bigint();
  await client.query(update([id]));
  const updatedAt = hrtime.bigint();
  await client.query("commit");
  return Number((until === "update" ? updatedAt : hrtime.bigint()) - startedAt) / 1_000;
}

type Way = readonly [name: string, once: (client: pg.Client) => Promise<number>];

const transactions: readonly Way[] = [
  ["begin, read, update, insert, commit", (client) => threeStatements(client, () => ["begin"])],
  ["guard sent with begin", (client) => threeStatements(client, (id) => [`begin; ${guardOf(id)}`])],
  ["withFencedTransaction", fencedTransaction],
  ["guard in a round trip of its own", (client) => threeStatements(client, (id) => ["begin", guardOf(id)])],
];
const updates = (until: "update" | "commit"): readonly Way[] => [
  [`update of one row, until the ${until}`, (client) => singleUpdate(client, "plain_accounts", until)],
  ["the same, fenced table", (client) => singleUpdate(client, "fenced_accounts", until)],
];

async function compare(client: pg.Client, ways: readonly Way[]): Promise<string[][]> {
  const samples = new Map<Way, number[]>(ways.map((way) => [way, []]));
  for (let round = -2; round < ROUNDS; round += 1) {
    progress(`round ${round} of ${ROUNDS}`);
    for (const way of round % 2 === 0 ? ways : [...ways].reverse()) {
      const took: number[] = [];
      for (let i = 0; i < EACH; i += 1) took.push(await way[1](client));
      if (round >= 0) samples.get(way)?.push(median(took));
    }
  }
  progressEnded();
  const [[, without = []] = []] = samples;
  return [...samples].map(([[name], took]) => [name, fixed(median(took), 0), fixed(ratio(took, without), 3)]);
}

export async function measureOwnTables({ gatewayDatabase }: ComparedServers): Promise<void> {
  heading(
    "The fence on the user's own tables",
    `one connection, commits on disk; ${ROUNDS} rounds in turns, the median of ${EACH} each; ratio: median over the rounds`,
  );
  const client = new pg.Client({ connectionString: gatewayDatabase });
  await client.connect();
  try {
    await prepare(client);
    const results = [
      ...(await compare(client, transactions)),
      ...(await compare(client, updates("update"))),
      ...(await compare(client, updates("commit"))),
    ];
    console.log(table([{ title: "", align: "left" }, { title: "µs" }, { title: "ratio" }], results));
  } finally {
    await client.end();
  }
}

// What tests send to Postgres themselves: the fenced statement in all forms, so that it can be held
// open in a transaction, raced, or explained; every kind of row and of write; rows that are held;
// tables of a user's own under the fence, and transactions that present pairs of resource and token.
import type pg from "pg";
import type { WriteRequest } from "../../src/fence/verdict.js";
import type { FencedRow, StoredState } from "../../src/write/condition.js";
import { fencedWrite, parametersOf, valuesOf } from "../../src/write/statement.js";
import { type Connect, expect, isOnCitus, uniqueName } from "./fixtures.js";

/**
 * any: INSERT … ON CONFLICT. known: UPDATE, for resources that have a row. one: a single write with
 * values in place of arrays.
 */
export type Way = "any" | "known" | "any one" | "known one";
export const ways: readonly Way[] = ["any", "known", "any one", "known one"];

export const plainForm = { scope: "each", history: "off", durability: "local", documentLimitBytes: 1_000_000 } as const;

const isOne = (way: Way): boolean => way.endsWith("one");

export function statementText(way: Way): string {
  return fencedWrite({ ...plainForm, rows: way.startsWith("any") ? "any" : "known", scope: isOne(way) ? "one" : "each" }).text;
}

export function statementValues(
  operations: readonly WriteRequest[],
  { way = "any", verified = true }: { readonly way?: Way; readonly verified?: boolean } = {},
): (string | Buffer | null)[] {
  const rows = operations.map((request): FencedRow => ({ request, verified }));
  const [only] = rows;
  return [...(only !== undefined && isOne(way) ? valuesOf(only) : parametersOf(rows, "each")), null];
}

/** The names of the resources it accepted. */
export async function runStatement(
  { client, way = "any" }: { readonly client: pg.Client; readonly way?: Way },
  ...operations: WriteRequest[]
): Promise<string[]> {
  const accepted: string[] = [];
  for (const part of isOne(way) ? operations.map((operation) => [operation]) : [operations]) {
    const { rows } = await client.query<{ resource: string }>(statementText(way), statementValues(part, { way }));
    accepted.push(...rows.map((row) => row.resource));
  }
  return accepted;
}

export function put(resource: string, token: number, value: string): WriteRequest {
  return { op: "put", resource, token, value };
}

/** Every kind of row, and of no row. */
const states: readonly (StoredState | undefined)[] = [
  undefined,
  ...[4, 5, 6].flatMap((token) =>
    [0, 3].flatMap((seq) => [
      { token, seq, rev: 0, deleted: true },
      { token, seq, rev: 2, deleted: true },
      { token, seq, rev: 2, deleted: false },
    ]),
  ),
];
const requests: readonly Omit<WriteRequest, "resource">[] = [undefined, 2, 3, 4].flatMap((seq) => [
  { op: "seal" as const, token: 5, seq },
  ...([undefined, "absent", "present", 1, 2] as const).flatMap((expected) => [
    { op: "put" as const, token: 5, seq, expected, value: "1" },
    { op: "patch" as const, token: 5, seq, expected, value: "1" },
    { op: "delete" as const, token: 5, seq, expected },
  ]),
]);

export interface Case {
  readonly state: StoredState | undefined;
  readonly request: WriteRequest;
}

/** Each of these requests for a resource of its own in each of these states, in which it is stored. */
export async function storedCases(client: pg.Client): Promise<readonly Case[]> {
  const cases = states.flatMap((state) => requests.map((request) => ({ state, request: { ...request, resource: uniqueName("case") } })));
  const stored = cases.flatMap(({ state, request }) => (state === undefined ? [] : [{ ...state, resource: request.resource }]));
  await client.query(
    `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, value, updated_at)
     select resource, token, seq, rev, 0, 'put', deleted, case when deleted then null else '1'::jsonb end, now()
     from jsonb_to_recordset($1) as stored(resource text, token bigint, seq bigint, rev bigint, deleted boolean)`,
    [JSON.stringify(stored)],
  );
  expect(cases.length).toBe(19 * 64);
  return cases;
}

/** Another session, in a transaction that holds these rows until it ends, and changes nothing of them. */
export async function holderOf(connect: Connect, ...resources: readonly string[]): Promise<pg.Client> {
  const holder = await connect();
  await holder.query("begin");
  for (const resource of resources) await holder.query("select palisade.guard($1, coalesce(palisade.fence_of($1), 1))", [resource]);
  return holder;
}

const WAITING = "datname = current_database() and wait_event_type = 'Lock'";

/** On the database's server, or on every server of its cluster. */
async function everywhere(client: pg.Client, text: string): Promise<number> {
  const counted = isOnCitus() ? "select sum(result::int)::int as n from run_command_on_all_nodes($1)" : text;
  const { rows } = await client.query<{ n: number }>(counted, isOnCitus() ? [text] : []);
  return rows[0]?.n ?? 0;
}

/** Resolves as soon as some session of the database waits for a lock. */
export async function untilSomebodyWaits(client: pg.Client, waiting = 1): Promise<void> {
  while ((await everywhere(client, `select count(*)::int as n from pg_stat_activity where ${WAITING}`)) < waiting);
}

/** Cuts the sessions of the database that wait for a lock. */
export async function cutWaitingSessions(client: pg.Client): Promise<void> {
  await everywhere(client, `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity where ${WAITING}`);
}

export type Pair = readonly [resource: string, token: number];

export async function inTransaction<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/** The statements in one transaction, under these pairs. */
export async function writeUnder(client: pg.Client, pairs: readonly Pair[], ...texts: readonly string[]): Promise<void> {
  await inTransaction(client, async () => {
    for (const [resource, token] of pairs) await client.query("select palisade.present($1, $2)", [resource, token]);
    for (const text of texts) await client.query(text);
  });
}

/** A name that may stand in SQL without quotes. */
export function tableName(prefix: string): string {
  return uniqueName(prefix).replace(/\W/g, "_").toLowerCase();
}

export async function fencedTable(client: pg.Client, columns: string, ...key: readonly string[]): Promise<string> {
  const table = tableName("fenced");
  await client.query(`create table ${table} (${columns})`);
  await fence(client, table, key);
  return table;
}

/** A row of the table is the resource `<table>/<key>`. */
export async function fence(client: pg.Client, table: string, key: readonly string[]): Promise<void> {
  await client.query("select palisade.fence_table($1, $2, variadic $3)", [table, `${table}/`, key]);
}

export async function fenceOf(client: pg.Client, resource: string): Promise<number | null> {
  const { rows } = await client.query<{ token: string | null }>("select palisade.fence_of($1) as token", [resource]);
  const token = rows[0]?.token ?? null;
  return token === null ? null : Number(token);
}

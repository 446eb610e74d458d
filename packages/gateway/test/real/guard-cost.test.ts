// What the fence costs Postgres: nothing for a refusal, no index work for an update, and one
// look-up by key however large the table.
import type pg from "pg";
import type { WriteRequest } from "../../src/fence/verdict.js";
import { OPEN_SESSION, sessionParameters } from "../../src/store/session.js";
import { columnsOf, fencedWrite } from "../../src/write/statement.js";
import { plainForm, put, runStatement, statementText, statementValues, ways } from "../support/statement.js";
import { expect, test, uniqueName } from "../support/store.js";

interface Plan {
  readonly "WAL Records": number;
  readonly "WAL Bytes": number;
  readonly "Node Type": string;
  readonly Plans?: readonly Plan[];
}

/**
 * The executed plan, and whether a transaction number was taken: without one there is nothing to
 * commit and nothing to wait for.
 */
async function execute(client: pg.Client, text: string, values: (string | Buffer | null)[]): Promise<{ plan: Plan; tookNumber: boolean }> {
  await client.query("begin");
  const { rows } = await client.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
    `explain (analyze, wal, format json) ${text}`,
    values,
  );
  const taken = await client.query<{ taken: boolean }>("select pg_current_xact_id_if_assigned() is not null as taken");
  await client.query("commit");
  const plan = rows[0]?.["QUERY PLAN"][0].Plan;
  if (plan === undefined) throw new Error("no plan");
  return { plan, tookNumber: taken.rows[0]?.taken === true };
}

const refused = (resource: string): WriteRequest[] => [
  put(resource, 34, "1"),
  { ...put(resource, 35, "1"), seq: 6 },
  { ...put(resource, 35, "1"), expected: 9 },
  { ...put(resource, 36, "1"), expected: "absent" },
  { op: "delete", resource: uniqueName("nothing"), token: 34 },
  { op: "patch", resource: uniqueName("nothing"), token: 34, value: "{}" },
  { ...put(uniqueName("nothing"), 34, "1"), expected: "present" },
];

for (const way of ways) {
  test(`every kind of refused write adds 0 bytes of WAL and takes no transaction number (rows: ${way})`, async ({ connect }) => {
    const client = await connect();
    const resource = uniqueName();
    await runStatement({ client }, { ...put(resource, 35, "1"), seq: 6 });
    const accepted = await execute(client, statementText(way), statementValues([{ ...put(resource, 35, "2"), seq: 7 }], { way }));
    expect(accepted.plan["WAL Bytes"]).toBeGreaterThan(0);
    expect(accepted.tookNumber).toBe(true);
    for (const operation of refused(resource)) {
      const { plan, tookNumber } = await execute(client, statementText(way), statementValues([operation], { way }));
      expect({ operation, records: plan["WAL Records"], bytes: plan["WAL Bytes"], tookNumber }).toEqual({
        operation,
        records: 0,
        bytes: 0,
        tookNumber: false,
      });
    }
  });
}

test("control: without the look at the snapshot a refused write locks the row and writes WAL", async ({ connect }) => {
  const client = await connect();
  const resource = uniqueName();
  await runStatement({ client }, put(resource, 35, "1"));
  const withoutLook = statementText("any").replace(
    /where\s[^\n]*\n\s+and\s+case when seen\.token is null[\s\S]*?(?=\s*on conflict)/,
    "where true",
  );
  expect(withoutLook).not.toBe(statementText("any"));
  const { plan, tookNumber } = await execute(client, withoutLook, statementValues([put(resource, 34, "2")]));
  expect(plan["WAL Bytes"]).toBeGreaterThan(50);
  expect(tookNumber).toBe(true);
});

test("a refused transaction adds 0 bytes of WAL as well, however many of its operations would pass", async ({ connect }) => {
  const client = await connect();
  const resource = uniqueName();
  await runStatement({ client }, put(resource, 35, "1"));
  const { text } = fencedWrite({ ...plainForm, rows: "any", scope: "all" });
  const operations = [put(resource, 34, "2"), ...Array.from({ length: 10 }, () => put(uniqueName("other"), 34, "2"))];
  const rows = operations.map((request) => ({ request, verified: true }));
  const { plan, tookNumber } = await execute(client, text, columnsOf(rows));
  expect({ bytes: plan["WAL Bytes"], tookNumber }).toEqual({ bytes: 0, tookNumber: false });
});

test("updates are heap-only: they leave the index alone", async ({ connect }) => {
  const client = await connect();
  const resource = uniqueName("hot");
  const counters = async () => {
    await client.query("select pg_stat_force_next_flush()");
    const { rows } = await client.query<{ all: number; hot: number }>(
      "select n_tup_upd::int as all, n_tup_hot_upd::int as hot from pg_stat_user_tables where schemaname = 'palisade' and relname = 'resources'",
    );
    return rows[0] ?? { all: 0, hot: 0 };
  };
  await client.query("vacuum palisade.resources"); // So that the row's page has the room that fillfactor leaves.
  await runStatement({ client }, put(resource, 1, '"some document"'));
  const before = await counters();
  for (const way of [...ways, ...ways, ...ways]) await runStatement({ client, way }, put(resource, 2, '"another document"'));
  const after = await counters();
  expect({ all: after.all - before.all, hot: after.hot - before.hot }).toEqual({ all: 12, hot: 12 });
});

for (const way of ways)
  test(`a plan made while the table was empty still looks rows up by key (rows: ${way})`, async ({ connect }) => {
    const client = await connect();
    await client.query("analyze palisade.resources"); // Now a full scan looks cheapest to the planner.
    const { processID } = client as unknown as { readonly processID: number };
    await client.query(OPEN_SESSION, [...sessionParameters({ batchLockWaitMs: 500, statementTimeoutMs: 4_000 }), processID]);
    const { plan } = await execute(client, statementText(way), statementValues([put(uniqueName(), 1, "1")], { way }));
    const nodes = (node: Plan): string[] => [node["Node Type"], ...(node.Plans ?? []).flatMap(nodes)];
    expect(nodes(plan)).toContain("Index Scan");
    expect(nodes(plan)).not.toContain("Seq Scan");
  });

test("the table itself refuses tokens, sequences and revisions that JavaScript could not hold", async ({ connect }) => {
  const client = await connect();
  const insert = (column: "token" | "seq" | "rev", number: string) =>
    client.query(
      `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at)
       values ($1, $2, $3, $4, 0, 'seal', true, now())`,
      [uniqueName(), column === "token" ? number : "1", column === "seq" ? number : "0", column === "rev" ? number : "0"],
    );
  for (const [column, number] of [
    ["token", "0"],
    ["token", "1000000000000000"],
    ["token", "-1"],
    ["seq", "1000000000000000"],
    ["seq", "-1"],
    ["rev", "-1"],
  ] as const)
    await expect(insert(column, number)).rejects.toMatchObject({ code: "23514" });
  await insert("token", "999999999999999");
});

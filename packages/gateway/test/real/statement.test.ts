// The one statement that writes: what it accepts, what it costs Postgres, and why the fence lives in
// the row that it guards. On plain Postgres, in all of its forms.
import type pg from "pg";
import type { WriteRequest } from "../../src/fence/verdict.js";
import { OPEN_SESSION, sessionParameters } from "../../src/store/session.js";
import { refusalOf } from "../../src/write/condition.js";
import { fencedWrite, parametersOf } from "../../src/write/statement.js";
import { type Connect, describe, expect, test, uniqueName } from "../support/fixtures.js";
import {
  plainForm,
  put,
  runStatement,
  statementText,
  statementValues,
  storedCases,
  untilSomebodyWaits,
  type Way,
  ways,
} from "../support/sql.js";

// In SQL and in TypeScript, which explains to a writer why nothing was stored.
test.for(ways)("G1 the statement accepts exactly what its explanation calls admissible (rows: %s)", async (way, { connect }) => {
  const client = await connect();
  const cases = await storedCases(client);
  const accepted = await runStatement({ client, way }, ...cases.map(({ request }) => request));
  const admissible = cases.filter(
    ({ state, request }) =>
      refusalOf({ request, verified: true }, state).kind === "admissible" && (way.startsWith("any") || state !== undefined),
  );
  expect(accepted.sort()).toEqual(admissible.map(({ request }) => request.resource).sort());
});

test("G4 the statement lets an unverified row through only where it raises nothing", async ({ connect }) => {
  const client = await connect();
  for (const way of ways) {
    const [there, absent] = [uniqueName(), uniqueName()];
    await runStatement({ client }, put(there, 5, "1"));
    const accepts = async (resource: string, token: number): Promise<boolean> => {
      const values = statementValues([put(resource, token, "2")], { way, verified: false });
      return (await client.query(statementText(way), values)).rowCount === 1;
    };
    const passed = [await accepts(there, 6), await accepts(there, 4), await accepts(absent, 1), await accepts(there, 5)];
    expect([way, ...passed]).toEqual([way, false, false, false, true]);
  }
});

// Connections may be shared behind a pooler, so a prepared statement's name must tell its text.
test("G3 statements with different texts have different names, which Postgres does not cut off", () => {
  const textOf = new Map<string, string>();
  for (const rows of ["any", "known"] as const)
    for (const scope of ["each", "all", "one"] as const)
      for (const history of ["off", "on"] as const)
        for (const durability of ["local", "sync"] as const) {
          const { name, text } = fencedWrite({ rows, scope, history, durability, documentLimitBytes: 1_000 });
          expect(textOf.get(name) ?? text).toBe(text);
          textOf.set(name, text);
          expect(name.length).toBeLessThan(64);
        }
  expect([textOf.size, new Set(textOf.values()).size]).toEqual([24, 24]);
});

interface Plan {
  readonly "WAL Records": number;
  readonly "WAL Bytes": number;
  readonly "Node Type": string;
  readonly Plans?: readonly Plan[];
}

/**
 * What executing this wrote by Postgres' own count, and whether a transaction number was taken:
 * without one there is nothing to commit and nothing to wait for.
 */
async function execute(client: pg.Client, text: string, values: readonly (string | Buffer | null)[]) {
  await client.query("begin");
  const { rows } = await client.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(`explain (analyze, wal, format json) ${text}`, [
    ...values,
  ]);
  const taken = await client.query<{ taken: boolean }>("select pg_current_xact_id_if_assigned() is not null as taken");
  await client.query("commit");
  const plan = rows[0]?.["QUERY PLAN"][0].Plan;
  if (plan === undefined) throw new Error("no plan");
  return { plan, records: plan["WAL Records"], bytes: plan["WAL Bytes"], tookNumber: taken.rows[0]?.taken === true };
}

/**
 * The least that something costs that changes nothing. Whoever reads a page where rows were updated
 * may clean it up, which writes WAL once: when that is depends on how full the page is and on what
 * other sessions still see.
 */
async function leastCost(...statement: Parameters<typeof execute>) {
  let least = await execute(...statement);
  for (let more = 0; more < 4 && least.bytes > 0; more++) least = await execute(...statement);
  return { records: least.records, bytes: least.bytes, tookNumber: least.tookNumber };
}

describe("the cost", () => {
  const refused = (resource: string): WriteRequest[] => [
    put(resource, 34, "1"),
    { ...put(resource, 35, "1"), seq: 6 },
    { ...put(resource, 35, "1"), expected: 9 },
    { ...put(resource, 36, "1"), expected: "absent" },
    { op: "delete", resource: uniqueName("nothing"), token: 34 },
    { op: "patch", resource: uniqueName("nothing"), token: 34, value: "{}" },
    { ...put(uniqueName("nothing"), 34, "1"), expected: "present" },
  ];

  test("every kind of refused write adds 0 bytes of WAL and takes no transaction number", async ({ connect }) => {
    const client = await connect();
    for (const way of ways) {
      const resource = uniqueName();
      await runStatement({ client }, { ...put(resource, 35, "1"), seq: 6 });
      const accepted = await execute(client, statementText(way), statementValues([{ ...put(resource, 35, "2"), seq: 7 }], { way }));
      expect(accepted.bytes).toBeGreaterThan(0);
      expect(accepted.tookNumber).toBe(true);
      for (const operation of refused(resource)) {
        const cost = await leastCost(client, statementText(way), statementValues([operation], { way }));
        expect({ way, operation, ...cost }).toEqual({ way, operation, records: 0, bytes: 0, tookNumber: false });
      }
    }
  });

  test("control: without the look at the snapshot a refused write locks the row and writes WAL", async ({ connect }) => {
    const client = await connect();
    const resource = uniqueName();
    await runStatement({ client }, put(resource, 35, "1"));
    const look = /and\s+case when seen\.token is null[\s\S]*?(?=\s*on conflict)/;
    const withoutLook = statementText("any").replace(look, "");
    expect(withoutLook).not.toBe(statementText("any"));
    const { bytes, tookNumber } = await leastCost(client, withoutLook, statementValues([put(resource, 34, "2")]));
    expect(bytes).toBeGreaterThan(50);
    expect(tookNumber).toBe(true);
  });

  test("a refused transaction adds 0 bytes of WAL as well, however many of its operations would pass", async ({ connect }) => {
    const client = await connect();
    const resource = uniqueName();
    await runStatement({ client }, put(resource, 35, "1"));
    const { text } = fencedWrite({ ...plainForm, rows: "any", scope: "all" });
    const operations = [put(resource, 34, "2"), ...Array.from({ length: 10 }, () => put(uniqueName("other"), 34, "2"))];
    const rows = operations.map((request) => ({ request, verified: true }));
    const cost = await leastCost(client, text, [...parametersOf(rows, "all"), null]);
    expect(cost).toEqual({ records: 0, bytes: 0, tookNumber: false });
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

  test("a plan made while the table was empty still looks rows up by key", async ({ connect }) => {
    const client = await connect();
    await client.query("analyze palisade.resources"); // Now a full scan looks cheapest to the planner.
    const { processID } = client as unknown as { readonly processID: number };
    await client.query(OPEN_SESSION, [...sessionParameters({ batchLockWaitMs: 500, statementTimeoutMs: 4_000 }), processID]);
    const nodes = (node: Plan): string[] => [node["Node Type"], ...(node.Plans ?? []).flatMap(nodes)];
    for (const way of ways) {
      const { plan } = await execute(client, statementText(way), statementValues([put(uniqueName(), 1, "1")], { way }));
      expect([way, ...nodes(plan)]).toContain("Index Scan");
      expect([way, ...nodes(plan)]).not.toContain("Seq Scan");
    }
  });
});

test("the table itself refuses tokens, sequences and revisions that JavaScript could not hold", async ({ connect }) => {
  const client = await connect();
  const insert = (column: string, number: string) => {
    const given = { token: "1", seq: "0", rev: "0", [column]: number };
    const text = `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at)
      values ($1, $2, $3, $4, 0, 'seal', true, now())`;
    return client.query(text, [uniqueName(), given.token, given.seq, given.rev]);
  };
  for (const token of ["0", "1000000000000000", "-1"]) await expect(insert("token", token)).rejects.toMatchObject({ code: "23514" });
  for (const seq of ["1000000000000000", "-1"]) await expect(insert("seq", seq)).rejects.toMatchObject({ code: "23514" });
  await expect(insert("rev", "-1")).rejects.toMatchObject({ code: "23514" });
  await insert("token", "999999999999999");
});

// Each control is a plausible way to write the check, run in the same race: token 34 sees a fence of
// 33, token 35 raises it and writes, then 34 writes. The controls lose what 35 wrote. The statement
// does not, and neither does a stricter isolation level, which fails instead.
describe("the race", () => {
  /**
   * Token 35 has written and not yet committed; token 34's write starts, waits for the row, and
   * continues once 35 has committed. Resolves with the error of 34's write.
   */
  async function race(
    connect: Connect,
    writes: { readonly newer: (client: pg.Client) => Promise<unknown>; readonly stale: (client: pg.Client) => Promise<unknown> },
  ): Promise<unknown> {
    const [newer, stale, observer] = [await connect(), await connect(), await connect()];
    await newer.query("begin");
    await writes.newer(newer);
    const outcome = Promise.allSettled([writes.stale(stale)]);
    await untilSomebodyWaits(observer);
    await newer.query("commit");
    const [settled] = await outcome;
    await stale.query("rollback").catch(() => undefined);
    return settled?.status === "rejected" ? settled.reason : undefined;
  }

  async function storedValue(client: pg.Client, resource: string): Promise<unknown> {
    const { rows } = await client.query("select value::text as value from palisade.resources where resource = $1", [resource]);
    return rows[0]?.value;
  }
  const by = (resource: string, token: number): WriteRequest => put(resource, token, `"by ${token}"`);

  test("control: with the fence in another table than the data, token 34 overwrites what token 35 wrote", async ({ connect }) => {
    const client = await connect();
    await client.query("create table fences (resource text primary key, token bigint); create table data (resource text, value text)");
    const raise = "update fences set token = $2 where resource = $1 and token <= $2";
    const bySubSelect = "update data set value = $3 where resource = $1 and (select token from fences where resource = $1) <= $2";
    const byJoin =
      "update data set value = $3 from fences where fences.resource = data.resource and data.resource = $1 and fences.token <= $2";
    for (const write of [bySubSelect, byJoin]) {
      const resource = uniqueName();
      await client.query("insert into fences values ($1, 33)", [resource]);
      await client.query("insert into data values ($1, 'by 33')", [resource]);
      await race(connect, {
        newer: async (newer) => {
          await newer.query(raise, [resource, 35]);
          await newer.query(write, [resource, 35, "by 35"]);
        },
        stale: (stale) => stale.query(write, [resource, 34, "by 34"]),
      });
      const { rows } = await client.query("select value, token from data natural join fences where resource = $1", [resource]);
      expect([write, ...rows]).toEqual([write, { value: "by 34", token: "35" }]);
    }
  });

  test("control: read the fence, then write, and token 34 overwrites what token 35 wrote", async ({ connect }) => {
    const resource = uniqueName();
    const [newer, stale] = [await connect(), await connect()];
    await runStatement({ client: newer }, by(resource, 33));
    const { rows } = await stale.query<{ token: string }>("select token from palisade.resources where resource = $1", [resource]);
    expect(Number(rows[0]?.token)).toBeLessThanOrEqual(34); // The check passes; then the process pauses.
    await runStatement({ client: newer }, by(resource, 35));
    await stale.query("update palisade.resources set value = $2, rev = rev + 1 where resource = $1", [resource, '"by 34"']);
    expect(await storedValue(newer, resource)).toBe('"by 34"');
  });

  /** By the statement; `begin` opens the transaction of 34's write. */
  async function raceOf(connect: Connect, way: Way, begin?: string): Promise<{ failure: unknown; value: unknown; accepted: string[] }> {
    const [resource, client] = [uniqueName(), await connect()];
    await runStatement({ client }, by(resource, 33));
    let accepted: string[] = [];
    const failure = await race(connect, {
      newer: (newer) => runStatement({ client: newer, way }, by(resource, 35)),
      stale: async (stale) => {
        if (begin !== undefined) await stale.query(begin);
        accepted = await runStatement({ client: stale, way }, by(resource, 34));
      },
    });
    return { failure, accepted, value: await storedValue(client, resource) };
  }

  test("G1 the statement keeps what token 35 wrote", async ({ connect }) => {
    for (const way of ways)
      expect({ way, ...(await raceOf(connect, way)) }).toEqual({ way, failure: undefined, accepted: [], value: '"by 35"' });
  });

  test("G1 under a stricter isolation level it ends with 40001 and never with a stale write", async ({ connect }) => {
    for (const level of ["repeatable read", "serializable"])
      for (const way of ways) {
        const raced = await raceOf(connect, way, `begin isolation level ${level}`);
        expect({ level, way, ...raced }).toMatchObject({ failure: { code: "40001" }, accepted: [], value: '"by 35"' });
      }
  });
});

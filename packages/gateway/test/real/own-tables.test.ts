// The fence inside the user's own transactions and on the user's own tables: a transaction holds a
// set of pairs of resource and token, proved at its start, and a guarded row is written only under
// the pair of exactly its own resource.
import { readFile } from "node:fs/promises";
import { guard } from "@palisade/guard";
import { grantRoles, migrate } from "@palisade/guard/schema";
import { PostgresServer } from "@palisade/testkit";
import type pg from "pg";
import { type Connect, describe, expect, test, uniqueName } from "../support/fixtures.js";
import { fencedTable, fenceOf, inTransaction, type Pair, untilSomebodyWaits, writeUnder } from "../support/sql.js";

const noPair = { code: "PLS03" };
const stale = (fence: number) => ({ code: "PLS01", detail: String(fence) });

/** A fenced table with two rows, 7 and 8, under token 3. */
async function accounts(connect: Connect) {
  const [client, other, observer] = [await connect(), await connect(), await connect()];
  const table = await fencedTable(client, "id integer primary key, amount integer not null", "id");
  const resource = (id: number): string => `${table}/${id}`;
  /** Under one token for these rows. */
  const write = (token: number, ids: readonly number[], ...texts: readonly string[]) =>
    writeUnder(
      client,
      ids.map((id): Pair => [resource(id), token]),
      ...texts,
    );
  await write(3, [7, 8], `insert into ${table} values (7, 0), (8, 0)`);
  const amounts = async () =>
    (await client.query<{ amount: number }>(`select amount from ${table} order by id`)).rows.map((row) => row.amount);
  return { client, other, observer, table, resource, write, amounts };
}

describe("guard as the first statement of the user's own transaction", () => {
  test("G1 makes a newer holder wait for an older one's transaction, and a stale one fail after a newer one's", async ({ connect }) => {
    const { client: older, other: newer, observer, table, resource: of } = await accounts(connect);
    const resource = of(7);
    await older.query("begin");
    await guard(older, { resource, token: 34 });
    await newer.query("begin");
    const waits = guard(newer, { resource, token: 35 });
    await untilSomebodyWaits(observer);
    await older.query(`update ${table} set amount = 34 where id = 7`);
    await older.query("commit");
    await waits;
    // The newer holder's first read sees what the older one committed while it waited.
    expect((await newer.query(`select amount from ${table} where id = 7`)).rows).toEqual([{ amount: 34 }]);
    await older.query("begin");
    const tooLate = expect(guard(older, { resource, token: 34 })).rejects.toMatchObject({ code: "fencing_token_stale", currentToken: 35 });
    await untilSomebodyWaits(observer);
    await newer.query("commit");
    await tooLate;
    await older.query("rollback");
  });

  test("G1 checks the sequence within one token", async ({ connect }) => {
    const [client, resource] = [await connect(), uniqueName()];
    const numbered = (token: number, seq: number) =>
      inTransaction(client, () => guard(client, { resource, token, seq, holder: "worker-7" }));
    await numbered(5, 2);
    await expect(numbered(5, 2)).rejects.toMatchObject({ code: "sequence_out_of_order" });
    await numbered(5, 3);
    await numbered(6, 1);
  });

  test("G4 asks the lock about a token only when it would raise the fence", async ({ connect }) => {
    const [client, resource] = [await connect(), uniqueName()];
    const asked: number[] = [];
    const verify = async (_: string, token: number) => {
      asked.push(token);
      return token > 100 ? ("unissued" as const) : token === 77 ? ("unreachable" as const) : ("issued" as const);
    };
    const present = (token: number) => inTransaction(client, () => guard(client, { resource, token, verify }));
    await present(5);
    await present(5);
    for (const [token, code] of [
      [4, "fencing_token_stale"],
      [101, "fencing_token_unissued"],
      [77, "verification_unavailable"],
    ] as const)
      await expect(present(token)).rejects.toMatchObject({ code });
    expect(asked).toEqual([5, 101, 77]);
    await inTransaction(client, () => guard(client, { resource, token: 6 }));
  });

  test("with a token that is none, or where nothing may be written, is misuse", async ({ connect }) => {
    const client = await connect();
    for (const token of [0, -1, 1.5, 1_000_000_000_000_000, Number.NaN])
      await expect(guard(client, { resource: "r", token })).rejects.toThrow(RangeError);
    for (const call of ["guard('r', 0)", "guard('r', null)", "guard('r', 1, 0)", "present('r', -5)", "present('r', 1000000000000000)"])
      await expect(client.query(`select palisade.${call}`), call).rejects.toMatchObject(noPair);
    await client.query("begin read only");
    await expect(client.query("select palisade.present('r', 9)")).rejects.toMatchObject({ code: "25006" });
    await client.query("rollback");
  });
});

describe("a fenced table", () => {
  test("G1 refuses every row that a stale token touches, and derives the resource from the row", async ({ connect, store }) => {
    const { table, resource, write, amounts } = await accounts(connect);
    await write(35, [7, 8], `update ${table} set amount = 35`);
    await store.write({ op: "seal", resource: resource(8), token: 40 });
    await expect(write(34, [7], `update ${table} set amount = 34 where id = 7`)).rejects.toMatchObject(stale(35));
    await expect(write(35, [7, 8], `update ${table} set amount = 36`)).rejects.toMatchObject(stale(40));
    await expect(write(34, [7], `delete from ${table} where id = 7`)).rejects.toMatchObject(stale(35));
    await write(35, [7], `update ${table} set amount = 1 where id = 7`);
    await write(40, [8], `delete from ${table} where id = 8`);
    await expect(write(39, [8], `insert into ${table} values (8, 39)`)).rejects.toMatchObject(stale(40)); // Deleted, and still fenced.
    expect(await amounts()).toEqual([1]);
  });

  test("G1 guards both names of a row whose key changes", async ({ connect, store }) => {
    const { table, resource, write } = await accounts(connect);
    await store.write({ op: "seal", resource: resource(9), token: 9 });
    const rename = `update ${table} set id = 9 where id = 8`;
    await expect(write(8, [8, 9], rename)).rejects.toMatchObject(stale(9));
    for (const ids of [[8], [9]]) await expect(write(9, ids, rename)).rejects.toMatchObject(noPair);
    await write(9, [8, 9], rename);
    await expect(write(8, [8], `insert into ${table} values (8, 0)`)).rejects.toMatchObject(stale(9));
  });

  test("G2 refuses a write without a pair of its own transaction, whatever came before", async ({ connect }) => {
    const { client, other, table, resource, write, amounts } = await accounts(connect);
    const update = `update ${table} set amount = 9 where id = 7`;
    await expect(client.query(update)).rejects.toMatchObject(noPair);
    await write(9, [7]);
    await expect(client.query(update)).rejects.toMatchObject(noPair);
    await expect(inTransaction(client, () => client.query(update))).rejects.toMatchObject(noPair);
    await client.query("select palisade.guard($1, 9)", [resource(7)]); // Ends with its own statement.
    await expect(client.query(update)).rejects.toMatchObject(noPair);
    await client.query("begin");
    await client.query("select palisade.present($1, 9)", [resource(8)]);
    await expect(other.query(`update ${table} set amount = 9 where id = 8`)).rejects.toMatchObject(noPair);
    const { rows } = await client.query<{ xid: string }>("select pg_current_xact_id()::text as xid");
    // No setting stands for a pair.
    for (const value of ["9", "9@", `9@${rows[0]?.xid}`, `${resource(7)}@9@${rows[0]?.xid}`]) {
      await client.query("savepoint before");
      await client.query("select set_config('palisade.token', $1, true)", [value]);
      await expect(client.query(update), value).rejects.toMatchObject(noPair);
      await client.query("rollback to before");
    }
    await client.query("rollback");
    expect(await amounts()).toEqual([0, 0]);
  });
});

describe("the pairs of a transaction", () => {
  test("G5 write the rows of their own resources, and neither write nor raise another", async ({ connect }) => {
    const { client, table, resource, write, amounts } = await accounts(connect);
    await expect(write(34, [7], `update ${table} set amount = 34 where id = 8`)).rejects.toMatchObject(noPair);
    expect(await fenceOf(client, resource(8))).toBe(3);
    const both: readonly Pair[] = [
      [resource(8), 9],
      [resource(7), 5],
    ];
    await writeUnder(client, both, `update ${table} set amount = 1`);
    await expect(writeUnder(client, both, `update ${table} set amount = 2`, `insert into ${table} values (9, 2)`)).rejects.toMatchObject(
      noPair,
    );
    expect(await amounts()).toEqual([1, 1]);
    expect([await fenceOf(client, resource(7)), await fenceOf(client, resource(8))]).toEqual([5, 9]);
  });

  test("G5 given in one call are taken in the order of their names, so that two callers cannot deadlock", async ({ connect }) => {
    const [client, other] = [await connect(), await connect()];
    const names = Array.from({ length: 40 }, () => uniqueName("many"));
    const guardAll = (session: pg.Client, resources: readonly string[]) =>
      inTransaction(session, () => session.query("select palisade.guard_all($1, $2)", [resources, resources.map(() => 5)]));
    for (let round = 0; round < 20; round += 1) await Promise.all([guardAll(client, names), guardAll(other, [...names].reverse())]);
    expect(await fenceOf(client, names[0] ?? "")).toBe(5);
  });

  test("G5 given in one call are refused as a whole when one is stale, has no token or is malformed", async ({ connect }) => {
    const client = await connect();
    const [fresh, raised] = [uniqueName(), uniqueName()];
    await client.query("select palisade.guard($1, 35)", [raised]);
    const guardAll = (resources: readonly (string | null)[], tokens: readonly number[]) =>
      client.query("select palisade.guard_all($1, $2)", [resources, tokens]);
    await expect(guardAll([fresh, raised], [9, 34])).rejects.toMatchObject(stale(35));
    await expect(guardAll([fresh, raised], [9])).rejects.toMatchObject(noPair);
    await expect(guardAll([fresh, null], [9, 9])).rejects.toMatchObject(noPair);
    await expect(guardAll([fresh], [0])).rejects.toMatchObject(noPair);
    await expect(guardAll([], [])).rejects.toMatchObject(noPair);
    expect(await fenceOf(client, fresh)).toBeNull();
  });

  test("G5 go with a savepoint that is rolled back; those of a released one and of a function's block stay", async ({ connect }) => {
    const { client, table, resource, amounts } = await accounts(connect);
    await inTransaction(client, async () => {
      await client.query("select palisade.present($1, 9)", [resource(7)]);
      await client.query("savepoint before");
      await client.query("select palisade.present($1, 9)", [resource(8)]);
      await client.query(`update ${table} set amount = 1 where id = 8`);
      await client.query("rollback to before");
      await client.query(`update ${table} set amount = 2 where id = 7`);
      await client.query("savepoint again");
      await expect(client.query(`update ${table} set amount = 3 where id = 8`)).rejects.toMatchObject(noPair);
      await client.query("rollback to again");
    });
    expect([...(await amounts()), await fenceOf(client, resource(8))]).toEqual([2, 0, 3]);
    await inTransaction(client, async () => {
      await client.query("savepoint inner_one");
      await client.query("select palisade.present($1, 9)", [resource(7)]);
      await client.query("release inner_one");
      const block = `begin perform palisade.present('${resource(8)}', 9); exception when division_by_zero then raise; end`;
      await client.query(`do $$ ${block} $$; update ${table} set amount = 4`);
    });
    expect(await amounts()).toEqual([4, 4]);
  });

  test.for(["repeatable read", "serializable"])(
    "G5 under %s a holder that waited for another begins again, and whoever read before presenting too",
    async (level, { connect }) => {
      const { client, other, observer, table, resource, write } = await accounts(connect);
      const begin = `begin isolation level ${level}`;
      await client.query(begin);
      await client.query("select palisade.present($1, 5)", [resource(7)]);
      await other.query(begin);
      const waits = expect(other.query("select palisade.present($1, 6)", [resource(7)])).rejects.toMatchObject({ code: "40001" });
      await untilSomebodyWaits(observer);
      await client.query(`update ${table} set amount = 5 where id = 7`);
      await client.query("commit");
      await waits;
      await other.query("rollback");
      await other.query(begin);
      await other.query(`select amount from ${table} where id = 7`);
      await write(6, [7], `update ${table} set amount = amount + 1 where id = 7`);
      await expect(other.query("select palisade.present($1, 7)", [resource(7)])).rejects.toMatchObject({ code: "40001" });
      await other.query("rollback");
    },
  );

  test("G5 are kept by a prepared transaction until it is committed, which leaves none to its session", async ({ connect }) => {
    await using server = await PostgresServer.start({ settings: { max_prepared_transactions: "4" } });
    await migrate(server.url);
    const { client, other, table, resource, write } = await accounts(() => connect(server.url));
    await client.query("begin");
    await client.query("select palisade.present($1, 5)", [resource(9)]);
    await client.query(`insert into ${table} values (9, 5)`);
    await client.query("prepare transaction 'kept'");
    await expect(client.query(`insert into ${table} values (10, 6)`)).rejects.toMatchObject(noPair);
    await other.query("set lock_timeout = 100");
    await expect(other.query("select palisade.guard($1, 6)", [resource(9)])).rejects.toMatchObject({ code: "55P03" });
    await other.query("commit prepared 'kept'");
    await write(6, [9], `update ${table} set amount = 6 where id = 9`);
    await expect(client.query("select palisade.guard($1, 5)", [resource(9)])).rejects.toMatchObject(stale(6));
  });
});

/** One statement a line. Returns how many were refused, as the document says. */
async function runSql(client: pg.Client, text: string): Promise<number> {
  let refused = 0;
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const [, expected] = /-- refused: (\w+)/.exec(line) ?? [];
    const code = await client.query(line).then(
      () => undefined,
      (error: { readonly code: string }) => error.code,
    );
    expect({ line, code }).toEqual({ line, code: expected });
    refused += code === undefined ? 0 : 1;
  }
  return refused;
}

/** With the names that the block uses and does not define. */
async function runTypeScript(text: string, given: Readonly<Record<string, unknown>>): Promise<void> {
  const source = `export default async ({ ${Object.keys(given).join(", ")} }) => {\n${text.replace(/^import .*$/gm, "")}\n};`;
  const module = (await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(source)}`)) as {
    default(names: typeof given): Promise<void>;
  };
  await module.default(given);
}

test("every statement of docs/own-tables.md does what the document says, and is refused where it says so", async ({ connect }) => {
  await using server = await PostgresServer.start(); // Roles are the server's, not the database's.
  await migrate(server.url);
  await grantRoles(server.url);
  const client = await connect(server.url);
  await client.query("create role my_app");
  const document = await readFile(new URL("../../../../docs/own-tables.md", import.meta.url), "utf8");
  const [[, , grants = ""] = [], ...blocks] = document.matchAll(/```(sql|ts)\n([\s\S]*?)```/g);
  await runSql(client, grants);
  await client.query("set role my_app"); // No more rights than the document gives.
  let refused = 0;
  for (const [, language, text = ""] of blocks) {
    if (language === "sql") refused += await runSql(client, text);
    else await runTypeScript(text, { client, guard, lease: { resource: "accounts/7", token: 34 } });
  }
  expect(refused).toBe(7);
  expect(blocks.filter(([, language]) => language === "ts")).toHaveLength(1);
  expect((await client.query("select balance from accounts")).rows).toEqual([{ balance: 80 }]); // In TypeScript and in SQL once each.
});

// The guard through every driver and library, each in the transaction that it opens itself.
// Postgres says whether there is one: no class is asked, because the user's tree may hold other
// copies.
import pg from "pg";
import secondCopy from "pg-second-copy";
import { afterEach, describe } from "vitest";
import { expect, test, uniqueName } from "../../../gateway/test/support/fixtures.js";
import { guard } from "../../src/guard.js";
import { execute, readValue } from "../../src/statement.js";
import { type Driver, drivers, type OpenDriver } from "../support/drivers.js";

const opened: OpenDriver[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((driver) => driver.close()));
});

async function open({ open }: Driver, url: string): Promise<OpenDriver> {
  const driver = await open(url);
  opened.push(driver);
  return driver;
}

describe.for(drivers)("the guard through $name", (driver) => {
  test("G1 refuses a stale token in the library's own transaction, which stores nothing", async ({ connect, database }) => {
    const client = await connect();
    const table = `driven_${uniqueName("t").replace(/\W/g, "_")}`;
    await client.query(`create table ${table} (token integer)`);
    const { transaction } = await open(driver, database.url);
    const resource = uniqueName();
    const write = (token: number) =>
      transaction(async (tx) => {
        await guard(tx, { resource, token, seq: 1, holder: "worker-7" });
        await execute(tx, `insert into ${table} values (${token})`);
      });
    await write(35);
    await expect(write(34)).rejects.toMatchObject({
      name: "GuardError",
      code: "fencing_token_stale",
      resource,
      presentedToken: 34,
      currentToken: 35,
    });
    await expect(write(35)).rejects.toMatchObject({ name: "GuardError", code: "sequence_out_of_order" });
    expect((await client.query(`select token from ${table}`)).rows).toEqual([{ token: 35 }]);
  });

  test("G1 is refused outside of a transaction, where it would hold for one statement only", async ({ connect, database }) => {
    const client = await connect();
    const { outside } = await open(driver, database.url);
    const resource = uniqueName();
    await expect(guard(outside, { resource, token: 5 })).rejects.toThrow("guard needs an open transaction");
    expect((await client.query("select palisade.fence_of($1) as fence", [resource])).rows).toEqual([{ fence: null }]);
  });

  test("G4 asks the lock before a fence is raised, and takes any name for what it is", async ({ database }) => {
    const { transaction } = await open(driver, database.url);
    const resource = `${uniqueName()}/it's ? :id $1 \\ "ü" 'E'😀; select 1`;
    const asked: number[] = [];
    const verify = async (name: string, token: number) => {
      expect(name).toBe(resource);
      asked.push(token);
      return "issued" as const;
    };
    const seal = (token: number) => transaction((tx) => guard(tx, { resource, token, verify }));
    await seal(5);
    await seal(5);
    await seal(6);
    expect(asked).toEqual([5, 6]);
    await transaction(async (tx) => {
      expect(
        await readValue(tx, `select palisade.fence_of(convert_from('\\x${Buffer.from(resource).toString("hex")}', 'UTF8'))::text as value`),
      ).toBe("6");
    });
  });
});

test("G1 a client of another copy of pg is judged like one of this copy", async ({ database, connect }) => {
  expect(secondCopy.Client).not.toBe(pg.Client);
  const observer = await connect();
  const client = new secondCopy.Client({ connectionString: database.url });
  await client.connect();
  const resource = uniqueName();
  try {
    await expect(guard(client, { resource, token: 5 })).rejects.toThrow("guard needs an open transaction");
    expect((await observer.query("select palisade.fence_of($1) as fence", [resource])).rows).toEqual([{ fence: null }]);
    await client.query("begin");
    await guard(client, { resource, token: 5 });
    await client.query("commit");
    await client.query("begin");
    await expect(guard(client, { resource, token: 4 })).rejects.toMatchObject({ code: "fencing_token_stale", currentToken: 5 });
  } finally {
    await client.end();
  }
});

test("takes nothing that can send no statement", async () => {
  await expect(guard({} as never, { resource: "r", token: 1 })).rejects.toThrow("this is no transaction of pg");
  await expect(guard(undefined as never, { resource: "r", token: 1 })).rejects.toThrow("this is no transaction of pg");
});

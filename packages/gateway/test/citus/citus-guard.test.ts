// Own tables beside distributed fences: what differs from plain Postgres.
import { describe, expect, test, uniqueName } from "../support/fixtures.js";

describe("palisade.guard on Citus", () => {
  test("G5 takes no transaction that would read its own tables as they were before it waited", async ({ connect }) => {
    const client = await connect();
    for (const level of ["repeatable read", "serializable"]) {
      await client.query(`begin isolation level ${level}`);
      await expect(client.query("select palisade.guard($1, 1)", [uniqueName()])).rejects.toMatchObject({
        code: "0A000",
        message: `on Citus a token is presented in a transaction that is read committed, not ${level}`,
      });
      await client.query("rollback");
    }
  });

  test("G5 holds its pair whatever the style of dates of the session", async ({ connect }) => {
    const client = await connect();
    const resource = uniqueName();
    await client.query("set datestyle = 'SQL, DMY'");
    await client.query("begin");
    await client.query("select palisade.guard($1, 1)", [resource]);
    expect((await client.query("select palisade.holds_pair($1) as held", [resource])).rows).toEqual([{ held: true }]);
    await client.query("commit");
    const { rows } = await client.query(
      "select now() - updated_at < interval '1 minute' as is_recent from palisade.resources where resource = $1",
      [resource],
    );
    expect(rows).toEqual([{ is_recent: true }]);
  });
});

test("G3 a write is stored at its time whatever the style of dates of the database", async ({ database, connect, openStore }) => {
  const client = await connect();
  await client.query(`alter database "${database.name}" set datestyle = 'SQL, DMY'`);
  const store = await openStore();
  const resource = uniqueName();
  for (const token of [1, 2]) expect(await store.write({ op: "put", resource, token, value: "1" })).toMatchObject({ kind: "accepted" });
  const { rows } = await client.query(
    "select now() - updated_at < interval '1 minute' as is_recent from palisade.resources where resource = $1",
    [resource],
  );
  expect(rows).toEqual([{ is_recent: true }]);
  await client.query(`alter database "${database.name}" reset datestyle`);
});

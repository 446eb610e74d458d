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

  test("G5 holds its pair, and stores a write at its time, whatever the style of dates of the database", async ({
    database,
    connect,
    openStore,
  }) => {
    const owner = await connect();
    await owner.query(`alter database "${database.name}" set datestyle = 'SQL, DMY'`);
    const [client, store] = [await connect(), await openStore()];
    const [guarded, written] = [uniqueName(), uniqueName()];
    await client.query("begin");
    await client.query("select palisade.guard($1, 1)", [guarded]);
    expect((await client.query("select palisade.holds_pair($1) as held", [guarded])).rows).toEqual([{ held: true }]);
    await client.query("commit");
    for (const token of [1, 2])
      expect(await store.write({ op: "put", resource: written, token, value: "1" })).toMatchObject({ kind: "accepted" });
    const recent = "updated_at > now() - interval '1 minute'";
    const { rowCount } = await client.query(`select from palisade.resources where resource = any($1) and ${recent}`, [[guarded, written]]);
    expect(rowCount).toBe(2);
    await owner.query(`alter database "${database.name}" reset datestyle`);
  });
});

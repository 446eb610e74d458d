// A database that cannot run the gateway's statements: the operator hears so before the first
// write, and a writer is not told to try again for ever. A rule on the table makes a Postgres that
// refuses INSERT … ON CONFLICT, as other engines do.

import { migrate } from "@palisade/guard/schema";
import pg from "pg";
import type { StoreEvent } from "../../src/fenced-store.js";
import { test as base, expect, uniqueName } from "../support/fixtures.js";
import { put } from "../support/sql.js";

const test = base.extend("unable", async ({ postgres }, { onCleanup }) => {
  const database = await postgres.createDatabase();
  await migrate(database.url);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onCleanup(async () => {
    await client.end();
    await database.drop();
  });
  await client.query("create rule echo as on insert to palisade.resources do also notify written");
  return { url: database.url, repair: () => client.query("drop rule echo on palisade.resources"), client };
});

const statements = { name: "statements", status: "failed", detail: expect.stringContaining("ON CONFLICT") };

test("G3 a statement that this engine cannot run is unavailable with its cause, and not contention", async ({ openStore, unable }) => {
  const events: StoreEvent[] = [];
  const store = await openStore({ databaseUrl: unable.url, observe: (event) => events.push(event) });
  const refused = { kind: "unavailable", reason: "refused", outcome: "not_applied", cause: { code: "0A000" } };
  expect(await store.write(put(uniqueName(), 1, "1"))).toMatchObject(refused);
  expect(await store.transaction({ operations: [put(uniqueName(), 1, "1")] })).toMatchObject(refused);
  const told = events.filter(({ kind }) => kind === "refused_by_database");
  expect(told).toMatchObject([{ error: { code: "0A000" } }, { error: { code: "0A000" } }]);
});

test("a store whose engine cannot run its statements is not ready before the first write, and is once it can", async ({
  openStore,
  unable,
}) => {
  const store = await openStore({ databaseUrl: unable.url, history: "on" });
  expect(await store.ready()).toMatchObject({ ready: false, checks: expect.arrayContaining([expect.objectContaining(statements)]) });
  await unable.repair();
  expect(await store.ready()).toMatchObject({ ready: true });
  const { rows } = await unable.client.query("select from palisade.resources union all select from palisade.history");
  expect(rows).toEqual([]);
});

test("G3 a plan that a migration has outdated is made again, and the write passes", async ({ openStore, unable }) => {
  await unable.repair();
  const store = await openStore({ databaseUrl: unable.url, statementsInFlight: 1 });
  const resource = uniqueName();
  const write = (token: number) => store.write({ op: "patch", resource, token, value: "{}" });
  await store.write(put(resource, 1, "{}"));
  expect(await write(1)).toMatchObject({ kind: "accepted", rev: 2 });
  // The type of a column that the statement returns changes.
  await unable.client.query("alter table palisade.resources alter column resource type varchar(512)");
  expect(await write(1)).toMatchObject({ kind: "accepted", rev: 3 });
});

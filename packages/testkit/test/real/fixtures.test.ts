// The fixtures that every other test stands on: what they hand out is fresh, apart from everybody else's, and taken back.
import { test as base, expect } from "@palisade/testkit/vitest";
import pg from "pg";

const test = base.extend("databaseTemplate", { scope: "file" }, async () => ({
  name: "fixtures",
  migrate: async (url: string) => {
    const client = new pg.Client(url);
    await client.connect();
    await client.query("create table notes (text text)");
    await client.end();
  },
}));

const namespaces: string[] = [];

test("a database begins as a copy of its file's template", async ({ database }) => {
  const client = new pg.Client(database.url);
  await client.connect();
  expect((await client.query("select count(*)::int as notes from notes")).rows).toEqual([{ notes: 0 }]);
  await client.end();
});

test("a namespace is unique to its test", async ({ redis }) => {
  namespaces.push(redis.namespace);
  expect(redis.urls.length).toBe(5);
});

test("a private fleet", async ({ fleet, redis }) => {
  expect(namespaces).not.toContain(redis.namespace);
  const own = await fleet({ nodes: 1 });
  await own.nodes[0]?.kill();
});

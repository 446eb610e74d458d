// The fixtures that every other test stands on: what they hand out is fresh, apart from everybody else's, and taken back.
import { expect, test as base } from "@palisade/testkit/vitest";
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

test("a database begins as a copy of its file's template", async ({ database }) => {
  const client = new pg.Client(database.url);
  await client.connect();
  expect((await client.query("select count(*)::int as notes from notes")).rows).toEqual([{ notes: 0 }]);
  await client.end();
});

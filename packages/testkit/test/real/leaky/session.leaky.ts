// Leaves a session in its database behind.
import { test } from "@palisade/testkit/vitest";
import pg from "pg";

test("opens a session and forgets it", async ({ database }) => {
  const client = new pg.Client({ connectionString: database.url, application_name: "forgetful" });
  client.on("error", () => {}); // The database is dropped all the same, and cuts it.
  await client.connect();
});

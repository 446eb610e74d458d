// SIGKILL to every process of Postgres while two gateways write: every acknowledged write is there
// afterwards, every refused one is not.
import { PostgresServer, queryAt, withClient } from "@palisade/testkit";
import { afterAll, beforeAll, describe, expect, test } from "@palisade/testkit/vitest";
import { migrate } from "../../src/store/migrate.js";
import { brokenThroughCrashes } from "../support/crashes.js";
import { uniqueName } from "../support/store.js";

let server: PostgresServer;

beforeAll(async () => {
  // The background WAL writer is kept out of it: what a commit did not flush itself is lost in a
  // crash.
  server = await PostgresServer.start({ settings: { wal_writer_delay: "10s", wal_writer_flush_after: "1GB" } });
  await migrate(server.url);
});
afterAll(async () => {
  await server.stop();
});

const eventually = { interval: 10, timeout: 30_000 } as const;

describe("G3 Postgres is killed under load", () => {
  test("G3 and every answer that was given is true afterwards, before, during and after the crash", async ({ onTestFinished }) => {
    const crash = async (): Promise<void> => {
      await server.crash();
      await server.restart();
    };
    expect(await brokenThroughCrashes({ databaseUrl: server.url, crashes: [crash, crash], onTestFinished })).toEqual([]);
  });

  test("G3 control: what was acknowledged without a flush is gone after the crash", async () => {
    const resource = uniqueName("unflushed");
    await server.restart();
    await withClient(server.url, async (client) => {
      // It begins with a round that flushes everything; the next one comes after ten seconds.
      const sleeping = "select from pg_stat_activity where backend_type = 'walwriter' and wait_event = 'WalWriterMain'";
      await expect.poll(async () => (await client.query(sleeping)).rowCount, eventually).toBe(1);
      await client.query("set synchronous_commit = off");
      await client.query("select palisade.guard($1, 35)", [resource]);
      await server.crash();
    });
    await server.restart();
    expect(await queryAt(server.url, "select token from palisade.resources where resource = $1", [resource])).toEqual([]);
  });
});

// SIGKILL to every process of Postgres while two gateways write: every acknowledged write is there afterwards, every refused one is not.
import { setTimeout as sleep } from "node:timers/promises";
import { PostgresServer } from "@palisade/testkit";
import { afterAll, beforeAll, describe, expect, test } from "@palisade/testkit/vitest";
import pg from "pg";
import { openStore } from "../../src/store/fenced-store.js";
import { migrate } from "../../src/store/migrate.js";
import { brokenPromises, Recorder } from "../support/history-checker.js";
import { uniqueName } from "../support/store.js";

let server: PostgresServer;

beforeAll(async () => {
  // The writer of WAL in the background stays out of it: what a commit did not flush itself is lost in a crash.
  server = await PostgresServer.start({ settings: { wal_writer_delay: "10s", wal_writer_flush_after: "1GB" } });
  await migrate(server.url);
});
afterAll(async () => {
  await server.stop();
});

async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: server.url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

describe("G3 Postgres is killed under load", () => {
  test("G3 and every answer that was given is true afterwards, before, during and after the crash", async () => {
    const one = await openStore({ databaseUrl: server.url, history: "on" });
    const two = await openStore({ databaseUrl: server.url, history: "on" });
    const resources = Array.from({ length: 12 }, () => uniqueName("crash"));
    const recorder = new Recorder();
    let writing = true;
    const writers = Array.from({ length: 24 }, async (_, index) => {
      for (let round = 1; writing; round += 1) {
        const resource = resources[(index + round) % resources.length] ?? "";
        const op = round % 10 === 0 ? "seal" : round % 7 === 0 ? "delete" : "put";
        const verdict = await recorder.write(index % 2 === 0 ? one : two, { op, resource, token: 1 + Math.floor(round / 4) + (index % 3) });
        if (verdict.kind === "unavailable") await sleep(2);
      }
    });
    const accepted = () => recorder.records.filter(({ verdict }) => verdict.kind === "accepted").length;
    for (let crash = 0; crash < 2; crash += 1) {
      const before = accepted();
      await expect.poll(() => accepted() - before, { interval: 1, timeout: 10_000 }).toBeGreaterThan(400);
      await server.crash();
      await server.restart();
    }
    const before = accepted();
    await expect.poll(() => accepted() - before, { interval: 1, timeout: 10_000 }).toBeGreaterThan(200);
    writing = false;
    await Promise.all(writers);
    await Promise.all([one.close(), two.close()]);
    const kinds = new Set(recorder.records.map(({ verdict }) => verdict.kind));
    expect([...kinds]).toEqual(expect.arrayContaining(["accepted", "stale", "unavailable"]));
    expect(await withClient((client) => brokenPromises(client, recorder.records))).toEqual([]);
  });

  test("G3 control: what was acknowledged without a flush is gone after the crash", async () => {
    const resource = uniqueName("unflushed");
    await withClient(async (client) => {
      await client.query("set synchronous_commit = off");
      await client.query("select palisade.guard($1, 35)", [resource]);
      await server.crash();
    }).catch(() => undefined);
    await server.restart();
    const { rows } = await withClient((client) => client.query("select token from palisade.resources where resource = $1", [resource]));
    expect(rows).toEqual([]);
  });
});

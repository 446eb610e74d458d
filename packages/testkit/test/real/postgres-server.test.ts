// Every fault of a Postgres server does what its name says, and heals. Each test runs on the one
// server of this file and leaves it running.
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectTo, PostgresServer, queryAt } from "@palisade/testkit";
import { afterAll, beforeAll, describe, expect, test } from "@palisade/testkit/vitest";
import type pg from "pg";
import { writeUntilCut } from "./postgres-writes.js";

const patient = { timeout: 10_000 };

let server: PostgresServer;

beforeAll(async () => {
  // The WAL writer sleeps for long: what its own commit did not flush is not flushed by chance.
  server = await PostgresServer.start({ settings: { wal_writer_delay: "10s" } });
  await query("create table writes (number int primary key)");
});

afterAll(async () => {
  await server.stop();
});

const connected = () => connectTo(server.url);
const query = <Row extends pg.QueryResultRow>(text: string) => queryAt<Row>(server.url, text);

async function stored(): Promise<number[]> {
  return (await query<{ number: number }>("select number from writes order by number")).map((row) => row.number);
}

/** Its first round flushes everything, and may begin after the server has said it is ready. */
async function walWriterSleeps(client: pg.Client): Promise<void> {
  const sleeping = "select from pg_stat_activity where backend_type = 'walwriter' and wait_event = 'WalWriterMain'";
  await expect.poll(async () => (await client.query(sleeping)).rowCount, patient).toBe(1);
}

describe("crash", () => {
  test("a crash in the middle of writes keeps every acknowledged one, and the address", async () => {
    const { url } = server;
    const client = await connected();
    const writing = writeUntilCut(client, 50);
    await writing.enough;
    await server.crash();
    const acknowledged = await writing.acknowledged;
    await server.restart();
    expect(server.url).toBe(url);
    expect(await stored()).toEqual(expect.arrayContaining(acknowledged));
    await query("truncate writes");
  });

  test("control: a crash loses an acknowledged write whose session did not wait for the flush", async () => {
    const client = await connected();
    await client.query("set synchronous_commit = off");
    await walWriterSleeps(client);
    await client.query("insert into writes values (1)");
    await server.crash();
    await server.restart();
    expect(await stored()).toEqual([]);
  });

  test("a crash ends every connection, and new ones are refused", async () => {
    const client = await connected();
    const cut = new Promise((resolve) => client.once("end", resolve));
    await server.crash();
    await cut;
    await expect(connected()).rejects.toThrow("ECONNREFUSED");
    await server.restart();
  });

  test("a crash of a paused server ends it as well", async () => {
    const client = await connected();
    const cut = new Promise((resolve) => client.once("end", resolve));
    await server.pause();
    await server.crash();
    await cut;
    await server.restart();
    expect(await query("select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("restart", () => {
  test("a restart of a running server shuts it down cleanly and keeps its data", async () => {
    await query("set synchronous_commit = off; insert into writes values (7)");
    await server.restart();
    expect(await stored()).toEqual([7]);
  });

  test("a restart waits for its port when another program has taken it", async () => {
    await server.crash();
    const squatter = createServer().listen(server.port, "127.0.0.1");
    await once(squatter, "listening");
    const restarted = server.restart();
    await expect(Promise.race([restarted, sleep(50, "still waiting")])).resolves.toBe("still waiting");
    squatter.close();
    await restarted;
    expect(await query("select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("pause", () => {
  test("a paused server answers neither its connections nor new ones, and answers both when it resumes", async () => {
    const client = await connected();
    await server.pause();
    const answers = Promise.all([client.query("select 1"), query("select 1")]);
    await expect(Promise.race([answers, sleep(50, "silence")])).resolves.toBe("silence");
    await server.resume();
    expect((await answers)[0].rowCount).toBe(1);
    await client.end();
  });
});

// Every fault of a Postgres server does what its name says, and heals; a pair replicates for real;
// databases are copies of templates.
import { setTimeout as sleep } from "node:timers/promises";
import { connectTo, PostgresPair, PostgresServer, queryAt } from "@palisade/testkit";
import { afterAll, beforeAll, describe, expect, test } from "@palisade/testkit/vitest";
import type pg from "pg";

const CREATE_WRITES = "create table writes (number int primary key)";
const writesOn = async (url: string): Promise<unknown[]> =>
  (await queryAt(url, "select number from writes order by number")).map(({ number }) => number);

/** Writes 1, 2, 3 … until the connection breaks; the numbers that were acknowledged. */
function writeUntilCut(client: pg.Client, count: number): { readonly enough: Promise<void>; readonly acknowledged: Promise<number[]> } {
  let resolve = (): void => {};
  const enough = new Promise<void>((done) => {
    resolve = done;
  });
  const write = async (): Promise<number[]> => {
    const numbers: number[] = [];
    for (let number = 1; ; number += 1) {
      try {
        await client.query("insert into writes values ($1)", [number]);
      } catch {
        return numbers; // Cut: this one may be stored or not.
      }
      if (numbers.push(number) === count) resolve();
    }
  };
  return { enough, acknowledged: write() };
}

describe("a server", () => {
  let server: PostgresServer;
  const query = (text: string): Promise<Record<string, unknown>[]> => queryAt(server.url, text);

  beforeAll(async () => {
    // The WAL writer sleeps for long: what its own commit did not flush is not flushed by chance.
    server = await PostgresServer.start({ settings: { wal_writer_delay: "10s" } });
    await query(CREATE_WRITES);
  });

  afterAll(async () => {
    await server.stop();
  });

  test("that crashes keeps every acknowledged write, and its address; meanwhile it refuses connections", async () => {
    const { url } = server;
    const writing = writeUntilCut(await connectTo(url), 50);
    await writing.enough;
    await server.crash();
    const acknowledged = await writing.acknowledged;
    await expect(connectTo(url)).rejects.toThrow("ECONNREFUSED");
    await server.restart();
    expect(server.url).toBe(url);
    expect(await writesOn(url)).toEqual(expect.arrayContaining(acknowledged));
    await query("truncate writes");
  });

  test("control: a crash loses an acknowledged write whose session did not wait for the flush; a restart does not", async () => {
    await using client = await connectTo(server.url);
    const sleeping = "select from pg_stat_activity where backend_type = 'walwriter' and wait_event = 'WalWriterMain'";
    // Its first round flushes everything, and may begin after the server has said it is ready.
    await expect.poll(async () => (await client.query(sleeping)).rowCount, { timeout: 10_000 }).toBe(1);
    await client.query("set synchronous_commit = off");
    await client.query("insert into writes values (1)");
    await server.crash();
    await server.restart();
    expect(await writesOn(server.url)).toEqual([]);
    await query("set synchronous_commit = off; insert into writes values (7)");
    await server.restart();
    expect(await writesOn(server.url)).toEqual([7]);
    await query("truncate writes");
  });

  test("that is paused answers nobody, and all when it resumes; crashed, it has done nothing that it was asked meanwhile", async () => {
    // An engine thaws a container before it kills it.
    await using own = await PostgresServer.start({ provider: "local" });
    await queryAt(own.url, CREATE_WRITES);
    const client = await connectTo(own.url);
    await own.pause();
    const answers = Promise.all([client.query("select 1"), queryAt(own.url, "select 1")]);
    await expect(Promise.race([answers, sleep(50, "silence")])).resolves.toBe("silence");
    await own.resume();
    expect((await answers)[0].rowCount).toBe(1);
    await own.pause();
    const cut = client.query("insert into writes values (1)").catch(() => "cut");
    await own.crash();
    expect(await cut).toBe("cut");
    await own.restart();
    expect(await writesOn(own.url)).toEqual([]);
  });
});

describe("a pair", () => {
  test("that is synchronous: a commit waits while the link is broken, and what was acknowledged is there after the promotion", async () => {
    await using pair = await PostgresPair.start({ replication: "sync" });
    await queryAt(pair.primary.url, CREATE_WRITES);
    await pair.caughtUp();
    await expect(queryAt(pair.standby.url, "insert into writes values (0)")).rejects.toMatchObject({ code: "25006" });
    await pair.replication.partition();
    const write = queryAt(pair.primary.url, "insert into writes values (-1)").then(() => "acknowledged");
    await expect(Promise.race([write, sleep(100, "waiting")])).resolves.toBe("waiting");
    expect(await writesOn(pair.standby.url)).toEqual([]);
    await pair.replication.heal();
    expect(await write).toBe("acknowledged");
    const writing = writeUntilCut(await connectTo(pair.primary.url), 20);
    await writing.enough;
    await pair.primary.crash();
    const acknowledged = await writing.acknowledged;
    await pair.promote();
    expect(await writesOn(pair.standby.url)).toEqual(expect.arrayContaining([-1, ...acknowledged]));
    await queryAt(pair.standby.url, "insert into writes values (0)");
  });

  test("control, asynchronous: a slow link delays the standby, and a write acknowledged while it was broken is lost", async () => {
    await using pair = await PostgresPair.start({ replication: "async" });
    await queryAt(pair.primary.url, CREATE_WRITES);
    await pair.caughtUp();
    pair.replication.slow(150);
    const startedAt = performance.now();
    await queryAt(pair.primary.url, "insert into writes values (33)");
    await pair.caughtUp();
    expect(performance.now() - startedAt).toBeGreaterThan(150);
    await pair.replication.partition();
    await queryAt(pair.primary.url, "insert into writes values (34)");
    await pair.primary.crash();
    await pair.promote();
    expect(await writesOn(pair.standby.url)).toEqual([33]);
  });
});

describe("databases", () => {
  const createNotes = (url: string): Promise<unknown> => queryAt(url, "create table notes (text text)");

  test("a template that several ask for at once is migrated once; one that fails leaves nothing for the next", async ({ postgres }) => {
    let migrations = 0;
    const migrate = async (url: string): Promise<void> => {
      migrations += 1;
      await createNotes(url);
      if (migrations === 1) throw new Error("no such column");
    };
    await expect(postgres.template("once", migrate)).rejects.toThrow("no such column");
    await Promise.all([1, 2, 3].map(() => postgres.template("once", migrate)));
    expect(migrations).toBe(2);
    await using copy = await postgres.createDatabase({ from: "once" });
    expect(await queryAt(copy.url, "select text from notes")).toEqual([]);
  });

  test("a dropped one is gone, also when sessions were connected", async ({ postgres }) => {
    const database = await postgres.createDatabase({ name: "dropped-while-in-use" });
    const client = await connectTo(database.url); // The drop cuts it; that is the point.
    const cut = new Promise((resolve) => client.once("end", resolve));
    await database.drop();
    await cut;
    await expect(queryAt(database.url, "select 1")).rejects.toThrow("does not exist");
  });
});

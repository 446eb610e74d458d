// What many concurrent writers were told, held against what is stored: after random schedules, and
// while gateways and Postgres are killed. The fence holds and every answer is true.
import { PostgresServer, queryAt, takePort, withClient } from "@palisade/testkit";
import fc from "fast-check";
import type { WriteRequest } from "../../src/fence/verdict.js";
import { migrate } from "../../src/store/migrate.js";
import { describe, eventually, expect, test, uniqueName } from "../support/fixtures.js";
import {
  brokenPromises,
  brokenThroughCrashes,
  brokenThroughDatabaseCrashes,
  overHttp,
  type Recorded,
  Recorder,
} from "../support/histories.js";

const operation = fc.record(
  {
    op: fc.constantFrom("put", "put", "put", "patch", "delete", "seal"),
    place: fc.nat(2),
    token: fc.integer({ min: 1, max: 8 }),
    seq: fc.integer({ min: 1, max: 4 }),
    expected: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom("absent" as const, "present" as const)),
  },
  { requiredKeys: ["op", "place", "token"] },
);
/** Clients run at the same time; the operations of each run one after the other. */
const clients = fc.array(fc.array(operation, { minLength: 1, maxLength: 12 }), { minLength: 2, maxLength: 10 });

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

function requestOf({ op, place, token, seq, expected }: Operation, resources: readonly string[]): WriteRequest {
  const value = op === "patch" ? { value: '{"patched":true}' } : {};
  return { op, resource: resources[place] ?? "", token, seq, ...(op === "seal" ? {} : { expected }), ...value };
}

describe("G1 random histories", () => {
  test("G1 of concurrent writers through two gateways never let a token fall, nor lose or invent a write", async ({
    openStore,
    connect,
  }) => {
    const [one, two] = [await openStore({ history: "on" }), await openStore({ history: "on", maxBatchRows: 3 })];
    const client = await connect();
    await fc.assert(
      fc.asyncProperty(clients, async (schedules) => {
        const resources = [uniqueName("h"), uniqueName("h"), uniqueName("h")];
        const recorder = new Recorder();
        await Promise.all(
          schedules.map(async (schedule, index) => {
            const store = index % 2 === 0 ? one : two;
            for (const step of schedule) await recorder.write((request) => store.write(request), requestOf(step, resources));
          }),
        );
        expect(await brokenPromises(client, recorder)).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  test("G1 control: the checker finds a token that fell, a lost write, an invented one and a false refusal", async ({
    connect,
    openStore,
  }) => {
    const client = await connect();
    const store = await openStore({ history: "on" });
    const resource = uniqueName("c");
    const recorder = new Recorder();
    for (const token of [1, 5]) await recorder.write((request) => store.write(request), { op: "put", resource, token });
    expect(await brokenPromises(client, recorder)).toEqual([]);
    const [first, second] = recorder.records as [Recorded, Recorded];
    const told = (record: Recorded, change: object): Recorded => ({ ...record, verdict: { ...record.verdict, ...change } });
    const faultsOf = async (...records: Recorded[]) =>
      (await brokenPromises(client, { records, knownBy: "holder" })).map((fault) => fault.slice(resource.length + 2));
    const found = (promise: string, what = "") => expect.arrayContaining([expect.stringMatching(new RegExp(`^${promise}: .*${what}`))]);
    expect(await faultsOf(first, told(second, { rev: 3 }))).toEqual(found("G3", "accepted as 3"));
    expect(await faultsOf(first, told(second, { kind: "stale" }))).toEqual(found("G3", "told stale"));
    expect(await faultsOf(first)).toEqual(found("G3", "nobody sent it"));
    expect(await faultsOf(first, second, told({ ...second, id: "w9" }, { kind: "accepted", rev: 9 }))).toEqual(found("G3", "is \\[\\]"));
    const falselyStale = told({ ...first, id: "w9", request: { ...first.request, token: 7 } }, { kind: "stale" });
    expect(await faultsOf(first, falselyStale)).toEqual(found("G1", "without a newer token"));
    const outOfOrder = { ...first, startedAt: second.endedAt + 1, endedAt: second.endedAt + 2 };
    expect(await faultsOf(outOfOrder, second)).toEqual(found("G1", "accepted after"));
    await client.query("update palisade.history set token = 9 where resource = $1 and rev = 1", [resource]);
    expect(await faultsOf(first, second)).toEqual(found("G1", "token 5 after 9"));
    await client.query("update palisade.history set holder = 'w1', rev = 3 where resource = $1 and rev = 2", [resource]);
    expect(await faultsOf(first, second)).toEqual(found("G3", "stands at place 2"));
    expect(await faultsOf(told(first, { kind: "outcome_unknown" }), second)).toEqual(found("G3", "told outcome_unknown"));
  });
});

test("G3 through kill -9 of a gateway under load every write that was accepted is there once, and no write that was refused is", async ({
  database,
  gateway: other,
  startProgram,
}) => {
  const env = { DATABASE_URL: database.url, PORT: String(await takePort()), PALISADE_HISTORY: "on" };
  let victim = await startProgram(env);
  const recorder = new Recorder("seq");
  const crash = async (): Promise<void> => {
    await victim.child.kill();
    victim = await startProgram(env);
  };
  const writers = [victim.url, victim.url, other.url].map(overHttp);
  const story = { writers, recorder, crashes: [crash, crash], writesBetween: 60, databaseUrl: database.url };
  expect(await brokenThroughCrashes(story)).toEqual([]);
  const kinds = new Set(recorder.records.map(({ verdict }) => verdict.kind));
  expect([...kinds]).toEqual(expect.arrayContaining(["accepted", "outcome_unknown", "stale"]));
  await victim.stop();
});

describe("G3 Postgres is killed under load", () => {
  const startServer = async (): Promise<PostgresServer> => {
    // The background WAL writer is kept out of it: what a commit did not flush itself is lost in a crash.
    const server = await PostgresServer.start({ settings: { wal_writer_delay: "10s", wal_writer_flush_after: "1GB" } });
    await migrate(server.url);
    return server;
  };

  test("G3 and every answer that was given is true afterwards, before, during and after the crash", async () => {
    await using server = await startServer();
    const crash = async (): Promise<void> => {
      await server.crash();
      await server.restart();
    };
    expect(await brokenThroughDatabaseCrashes(server.url, [crash, crash])).toEqual([]);
  });

  test("G3 control: what was acknowledged without a flush is gone after the crash", async () => {
    await using server = await startServer();
    await server.restart();
    await withClient(server.url, async (client) => {
      // It begins with a round that flushes everything; the next one comes after ten seconds.
      const sleeping = "select from pg_stat_activity where backend_type = 'walwriter' and wait_event = 'WalWriterMain'";
      await eventually(async () => (await client.query(sleeping)).rowCount).toBe(1);
      await client.query("set synchronous_commit = off");
      await client.query("select palisade.guard('unflushed', 35)");
      await server.crash();
    });
    await server.restart();
    expect(await queryAt(server.url, "select token from palisade.resources where resource = 'unflushed'")).toEqual([]);
  });
});

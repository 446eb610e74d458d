// POST /v1/call where more than one server takes part: a real synchronous pair, the lock's nodes,
// and a pooler between the gateway and Postgres.
import { createLocker } from "@palisade/lock";
import { Pgbouncer, PostgresPair, queryAt, type TestDatabase } from "@palisade/testkit";
import { migrate } from "../../src/store/migrate.js";
import { test as base, describe, expect, uniqueName } from "../support/fixtures.js";
import { type Answer, send } from "../support/wire.js";

const FUNCTION = `create table public.calls (resource text, n integer);
  create function public.add(resource text, n integer) returns integer language sql as
    'insert into public.calls values (resource, n) returning n'`;
const callFunctions = ["public.add"];

interface Added {
  readonly token: number;
  readonly n: number;
  readonly seq?: number;
}

function add(url: string, resource: string, { token, n, seq }: Added): Promise<Answer> {
  const lease = seq === undefined ? { resource, token } : { resource, token, seq };
  const body = JSON.stringify({ leases: [lease], arguments: { resource, n } });
  return send(url, { method: "POST", path: "/v1/call/public.add", headers: ["Content-Type", "application/json"], body });
}

const test = base
  /** One for the file: a test that cuts its link heals it; only the last one breaks it. */
  .extend("pair", { scope: "file" }, async ({ postgres: _ }, { onCleanup }): Promise<PostgresPair> => {
    const pair = await PostgresPair.start({ replication: "sync" });
    onCleanup(() => pair.stop());
    await migrate(pair.primary.url);
    await queryAt(pair.primary.url, FUNCTION);
    // Sessions that do not say otherwise commit without the standby.
    await queryAt(pair.primary.url, "alter system set synchronous_commit = 'local'");
    await queryAt(pair.primary.url, "select pg_reload_conf()");
    return pair;
  })
  .extend("functions", { scope: "file" }, async ({ database }: { database: TestDatabase }): Promise<string> => {
    await queryAt(database.url, FUNCTION);
    return database.url;
  });

const unknown = { status: 504, json: { code: "outcome_unknown", outcome: "unknown" } };
const countOf = (resource: string) => `select count(*)::integer as count from public.calls where resource = '${resource}'`;

describe("a call with a synchronous standby", () => {
  test("G3 that the standby has not is unknown, its retry is not told that it is stored, and afterwards it is there once", async ({
    pair,
    startGateway,
  }) => {
    const at = { databaseUrl: pair.primary.url, callDatabaseUrl: pair.primary.url, callFunctions, durability: "sync" } as const;
    const { url } = await startGateway({ ...at, lockWaitMs: 500, writeTimeoutMs: 1_500 });
    const resource = uniqueName();
    expect(await add(url, resource, { token: 5, n: 1, seq: 1 })).toMatchObject({ status: 200, json: { value: 1 } });
    await pair.replication.partition();
    expect(await add(url, resource, { token: 5, n: 2, seq: 2 })).toMatchObject(unknown);
    // Ending the wait makes the call visible, although the standby still lacks it.
    const cancel = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";
    const stored = async () => {
      await queryAt(pair.primary.url, cancel);
      return (await queryAt(pair.primary.url, countOf(resource)))[0]?.count;
    };
    await expect.poll(stored, { interval: 20 }).toBe(2);
    expect(await add(url, resource, { token: 5, n: 2, seq: 2 })).toMatchObject(unknown);
    await pair.replication.heal();
    await pair.joined();
    const retry = async () => (await add(url, resource, { token: 5, n: 2, seq: 2 })).json.code;
    await expect.poll(retry, { interval: 20, timeout: 30_000 }).toBe("sequence_out_of_order");
    expect(await queryAt(pair.primary.url, countOf(resource))).toEqual([{ count: 2 }]);
  });

  test("G3 behind a pooler in transaction mode that the standby has not is unknown as well", async ({
    pair,
    startGateway,
    onTestFinished,
  }) => {
    const pooler = await Pgbouncer.start({ databaseUrl: pair.primary.url, mode: "transaction" });
    onTestFinished(() => pooler.stop());
    const url = pooler.urlOf(pair.primary.url);
    const at = {
      databaseUrl: url,
      callDatabaseUrl: url,
      callFunctions,
      durability: "sync",
      lockWaitMs: 500,
      writeTimeoutMs: 1_500,
    } as const;
    const gateway = await startGateway(at);
    const resource = uniqueName();
    expect(await add(gateway.url, resource, { token: 5, n: 1 })).toMatchObject({ status: 200 });
    await pair.replication.partition();
    expect(await add(gateway.url, resource, { token: 5, n: 2 })).toMatchObject(unknown);
    await pair.replication.heal();
    await pair.joined();
  });

  test("G3 whose wait for the standby is cancelled is unknown, and a failover then keeps nothing that was acknowledged", async ({
    pair,
    startGateway,
  }) => {
    const at = { databaseUrl: pair.primary.url, callDatabaseUrl: pair.primary.url, callFunctions, durability: "sync" } as const;
    const { url } = await startGateway(at);
    const resource = uniqueName();
    expect(await add(url, resource, { token: 34, n: 34 })).toMatchObject({ status: 200 });
    await pair.replication.partition();
    const newer = add(url, resource, { token: 35, n: 35 });
    const waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
    await expect.poll(async () => (await queryAt(pair.primary.url, waiting)).length, { interval: 20 }).toBe(1);
    await queryAt(pair.primary.url, `select pg_cancel_backend(pid) from (${waiting}) as waiting`);
    expect(await newer).toMatchObject(unknown);
    await pair.primary.crash();
    await pair.promote();
    expect(await queryAt(pair.standby.url, countOf(resource))).toEqual([{ count: 1 }]);
    const alone = { databaseUrl: pair.standby.url, callDatabaseUrl: pair.standby.url, callFunctions, durability: "sync" } as const;
    const promoted = await startGateway(alone);
    expect(await add(promoted.url, resource, { token: 34, n: 0 })).toMatchObject({
      status: 503,
      json: { code: "unavailable", outcome: "not_applied" },
    });
    expect(await queryAt(pair.standby.url, countOf(resource))).toEqual([{ count: 1 }]);
  });
});

describe("a call with lock nodes", () => {
  test("G4 under a token that was never issued is refused, and raises nothing", async ({ functions, fleet, startGateway }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    await using holder = createLocker({ nodes: urls });
    const { url } = await startGateway({ redisUrls: [...urls], callFunctions, callDatabaseUrl: functions });
    const resource = uniqueName();
    const lease = await holder.acquire(resource);
    const forged = lease.token + 1_000_000;
    expect(await add(url, resource, { token: forged, n: 1 })).toMatchObject({
      status: 403,
      json: { code: "fencing_token_unissued", resource },
    });
    expect(await queryAt(functions, `select palisade.fence_of('${resource}') as fence`)).toEqual([{ fence: null }]);
    expect(await add(url, resource, { token: lease.token, n: 2 })).toMatchObject({ status: 200, json: { value: 2 } });
    expect(await add(url, resource, { token: forged, n: 3 })).toMatchObject({ status: 403 });
    await Promise.all(nodes.slice(0, 2).map((node) => node.kill()));
    // What was verified is remembered; what would raise a fence waits for the nodes.
    expect(await add(url, resource, { token: lease.token, n: 4 })).toMatchObject({ status: 200 });
    expect(await add(url, resource, { token: forged, n: 5 })).toMatchObject({
      status: 503,
      json: { code: "verification_unavailable", outcome: "not_applied" },
    });
    const rows = await queryAt(functions, `select n from public.calls where resource = '${resource}' order by n`);
    expect(rows).toEqual([{ n: 2 }, { n: 4 }]);
  });
});

describe.each(["session", "transaction"] as const)("a call behind pgbouncer in %s mode", (mode) => {
  test("G1 is guarded, is made once under its number, and leaves nothing on the connection", async ({
    functions,
    startGateway,
    onTestFinished,
  }) => {
    const pooler = await Pgbouncer.start({ databaseUrl: functions, mode, settings: { default_pool_size: "2", server_reset_query: "" } });
    onTestFinished(() => pooler.stop());
    const callDatabaseUrl = pooler.urlOf(functions);
    const gateway = await startGateway({ callFunctions, callDatabaseUrl, databaseUrl: functions });
    const { url } = gateway;
    const [resource, other] = [uniqueName(), uniqueName()];
    const calls = Array.from({ length: 30 }, (_, n) => add(url, n % 2 === 0 ? resource : other, { token: 35, n }));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(calls.map(() => 200));
    expect(await add(url, resource, { token: 34, n: 0 })).toMatchObject({ status: 412, json: { code: "fencing_token_stale" } });
    expect(await add(url, resource, { token: 36, n: 1, seq: 1 })).toMatchObject({ status: 200 });
    expect(await add(url, resource, { token: 36, n: 1, seq: 1 })).toMatchObject({ status: 409, json: { code: "sequence_out_of_order" } });
    expect(await queryAt(functions, countOf(resource))).toEqual([{ count: 16 }]);
    // In session mode it keeps both connections to Postgres while it runs.
    await gateway.close();
    const left = "select current_setting('lock_timeout') as wait, current_setting('statement_timeout') as time";
    expect(await queryAt(callDatabaseUrl, left)).toEqual([{ wait: "0", time: "0" }]);
  });
});

// A start that cannot come about tells what is missing, where, and what to do; and ends. What a
// gateway tells of itself, in its log and at its admin port. Its commands: test/long.
import { execFileSync } from "node:child_process";
import { constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { makeApiKey } from "@palisade/gateway";
import { grantRoles, migrate } from "@palisade/guard/schema";
import { gatewayProgram, PostgresPair, scratchFolder, startChild } from "@palisade/testkit";
import { bringUpToDate } from "../../src/gateway.js";
import { createLog } from "../../src/observe/log.js";
import { test as base, describe, eventually, expect, runProgram, uniqueName } from "../support/fixtures.js";
import { get, put, RawConnection, send } from "../support/wire.js";

const test = base.extend("pair", { scope: "file" }, async ({ postgres: _shared }, { onCleanup }): Promise<PostgresPair> => {
  const pair = await PostgresPair.start({ replication: "async" });
  onCleanup(() => pair.stop());
  return pair;
});

test("the admin port tells that the process lives, what it depends on, and what it counted", async ({ startGateway }) => {
  const { url, adminUrl } = await startGateway();
  const name = uniqueName();
  for (const token of [33, 34, 33]) await put(url, name, { token, value: {} });
  expect(await (await fetch(`${adminUrl}/live`)).json()).toEqual({ live: true });
  const warned = ["tokens", "durability", "credentials"].map((check) => expect.objectContaining({ name: check, status: "warning" }));
  expect(await (await fetch(`${adminUrl}/ready`)).json()).toMatchObject({ ready: true, checks: expect.arrayContaining(warned) });
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  for (const line of [
    'palisade_writes_total{op="put",outcome="accepted"} 2',
    'palisade_writes_total{op="put",outcome="stale"} 1',
    'palisade_requests_total{route="put",outcome="fencing_token_stale"} 1',
    "palisade_fence_raises_total 1",
    'palisade_request_duration_seconds_count{route="put"} 3',
    "palisade_requests_in_flight 0",
    "palisade_queued_writes 0",
    "palisade_body_bytes_held 0",
  ])
    expect(metrics.split("\n")).toContain(line);
  for (const metric of ["palisade_batch_rows_bucket", "palisade_pool_connections"]) expect(metrics).toContain(metric);
  expect(metrics).not.toContain(name);
});

describe("a start", () => {
  test("G6 without migrations succeeds while Postgres is silent, and on a standby, which it reads", async ({ pair, startGateway }) => {
    await migrate(pair.primary.url);
    const start = async (databaseUrl: string) => (await startGateway({ migrations: "off", connectTimeoutMs: 300, databaseUrl })).url;
    const onStandby = await start(pair.standby.url);
    await eventually(() => get(onStandby, "x")).toMatchObject({ status: 404, json: { code: "not_found" } }); // Once it has caught up.
    expect(await put(onStandby, "x", { token: 1, value: {} })).toMatchObject({ status: 503, json: { outcome: "not_applied" } });
    await pair.primary.pause();
    const url = await start(pair.primary.url);
    await pair.primary.resume();
    await eventually(() => put(url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
  });

  // The last of this pair: afterwards there are two primaries.
  test("ends with how long Postgres was waited for, and at a standby with what DATABASE_URL must name", async ({ pair }) => {
    const absent = bringUpToDate("postgres://a@127.0.0.1:1/b", createLog("silent"), { maxWaitMs: 10 });
    await expect(absent).rejects.toThrow(/^Postgres was not there within 0\.\d s: nothing answers at host and port 127\.0\.0\.1:1/);
    const start = bringUpToDate(pair.standby.url, createLog("silent"), { maxWaitMs: 10 });
    const sentence = /is a standby, which takes no writes: DATABASE_URL must name the primary, or an address that leads to it$/;
    await expect(start).rejects.toThrow(sentence);
    const waiting = bringUpToDate(pair.standby.url, createLog("silent"));
    await pair.promote();
    await waiting;
  });

  test("and every command says which part of the URL does not fit, and never the password", async ({ postgres }) => {
    const urlWith = (change: Partial<URL>): string =>
      Object.assign(new URL(postgres.url), { hostname: "127.0.0.1", password: "hunter2" }, change).href;
    for (const [change, sentence] of [
      [{ hostname: "no-such-host.invalid" }, /the host no-such-host\.invalid has no address/],
      [{ port: "1" }, /nothing answers at host and port 127\.0\.0\.1:1 \(ECONNREFUSED\)/],
      [{ username: "nobody-knows" }, /the user nobody-knows or its password is not accepted/],
      [{ pathname: "/nowhere" }, /there is no database nowhere at 127\.0\.0\.1/],
      [{ search: "?sslmode=verify-full" }, /sslmode does not fit: .* offers no TLS/],
    ] as const) {
      const told: unknown = await grantRoles(urlWith(change)).catch((error: unknown) => error);
      expect(String(told)).toMatch(sentence);
      expect(String(told)).not.toContain("hunter2");
    }
  });

  test("on an empty database that it may not migrate is not ready, until it is migrated", async ({ postgres, startProgram }) => {
    await using empty = await postgres.createDatabase();
    const gateway = await startProgram({ DATABASE_URL: empty.url, PALISADE_MIGRATIONS: "off" });
    const ready = async () => {
      const answer = await fetch(`${gateway.adminUrl}/ready`);
      return [answer.status, await answer.json()];
    };
    expect(await ready()).toEqual([503, expect.objectContaining({ ready: false })]);
    expect(await put(gateway.url, "x", { token: 1, value: {} })).toMatchObject({ status: 503, json: { outcome: "not_applied" } });
    expect(await runProgram(["migrate"], { DATABASE_URL: empty.url })).toMatchObject({ code: 0 });
    await eventually(ready).toEqual([200, expect.objectContaining({ ready: true })]);
    expect(await put(gateway.url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
    expect(await gateway.stop()).toMatchObject({ code: 0 });
  });
});

test("refused writes are logged with tokens, trace and outcome, never with a document or a credential", async ({
  database,
  startProgram,
}) => {
  const gateway = await startProgram({ DATABASE_URL: database.url, PALISADE_LOG_LEVEL: "debug" });
  expect(gateway.lines.join("\n")).toContain("NO CREDENTIALS ARE WANTED");
  const name = uniqueName();
  const value = { secret: "swordfish" };
  const trace = ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "X-Request-Id", "log-1"];
  await put(gateway.url, name, { token: 34, value, headers: ["Authorization", "Bearer open-sesame-open-sesame"] });
  await put(gateway.url, name, { token: 33, value, headers: trace });
  const body = JSON.stringify({ operations: [{ op: "put", resource: name, value }] });
  const headers = ["Content-Type", "application/json", "Fencing-Token", "32"];
  await send(gateway.url, { method: "POST", path: "/v1/transactions", headers, body });
  await get(gateway.url, `${name}?swordfish`);
  await gateway.stop();
  await eventually(() => gateway.lines.join("\n")).toContain('"closed"');
  const entries = gateway.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const traced = { requestId: "log-1", traceId: "4bf92f3577b34da6a3ce929d0e0e4736", parentSpanId: "00f067aa0ba902b7" };
  const refused = { resource: name, outcome: "fencing_token_stale", fence: 34, principal: "anonymous", status: 412, msg: "refused" };
  for (const entry of [
    { resource: name, outcome: "ok", principal: "anonymous", route: "put", token: 34 },
    { ...refused, ...traced, route: "put", token: 33 },
    { ...refused, token: 32 },
  ])
    expect(entries).toContainEqual(expect.objectContaining(entry));
  expect(gateway.lines.join("\n")).not.toMatch(/swordfish|sesame/);
});

/** A pipe that this process reads when a test says so. */
class Pipe {
  readonly path = join(scratchFolder("gateway-log"), "pipe");
  readonly #reader: number;
  text = "";

  constructor() {
    execFileSync("mkfifo", [this.path]);
    this.#reader = openSync(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
  }

  /** All that it holds now, after all that was read before. */
  read(): string {
    const buffer = Buffer.alloc(64 * 1024);
    try {
      for (let length = -1; length !== 0; ) {
        length = readSync(this.#reader, buffer);
        this.text += buffer.toString("utf8", 0, length);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
    return this.text;
  }
}

test("G6 a log that nobody reads stops nobody, says later how much of it was dropped, and holds up no exit", async ({
  database,
  redis,
  onTestFinished,
}) => {
  const pipe = new Pipe();
  const apiKeys = JSON.stringify([{ id: "worker", sha256: makeApiKey().sha256, scopes: ["read:"] }]);
  const lock = { PALISADE_REDIS_URLS: redis.urls.join(), PALISADE_NAMESPACE: redis.namespace };
  const env = {
    DATABASE_URL: database.url,
    PALISADE_API_KEYS: apiKeys,
    ...lock,
    PALISADE_DRAIN_MS: "0",
    HOST: "127.0.0.1",
    PORT: "0",
    ADMIN_PORT: "0",
  };
  const args = ["-c", 'exec "$0" "$1" > "$2"', process.execPath, gatewayProgram, pipe.path];
  const child = startChild({ command: "sh", args, env });
  onTestFinished(async () => void (await child.kill()));
  await eventually(() => pipe.read()).toContain('"listening"');
  const { url } = JSON.parse(pipe.text.split("\n").find((line) => line.includes('"listening"')) ?? "") as { readonly url: string };
  const refused = async (times: number): Promise<void> => {
    const connection = new RawConnection(url);
    connection.send(`GET /v1/resources/x HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: ${"i".repeat(128)}\r\n\r\n`.repeat(times));
    await eventually(() => connection.received.match(/HTTP\/1\.1 401 /g)?.length).toBe(times);
    connection.socket.destroy();
  };
  await refused(1_500);
  await eventually(() => pipe.read()).toMatch(/"dropped":\d+,"msg":"lines of the log were dropped/);
  const written = pipe.text.match(/"msg":"refused"/g)?.length ?? 0;
  expect(Number(/"dropped":(\d+)/.exec(pipe.text)?.[1]) + written).toBeGreaterThanOrEqual(1_500);
  await refused(400);
  child.signal("SIGTERM");
  expect(await child.waitForExit()).toEqual({ code: 0, signal: null });
});

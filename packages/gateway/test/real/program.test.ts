// The program: its commands, its exit codes, what it says and does not say, and that a start that
// cannot come about tells what is missing, where, and what to do; and ends.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeApiKey } from "@palisade/gateway";
import { PostgresPair, PostgresServer, returnPort, scratchFolder, startNode, takePort } from "@palisade/testkit";
import { bringUpToDate } from "../../src/gateway.js";
import { createLog } from "../../src/observe/log.js";
import { grantRoles, migrate } from "../../src/store/migrate.js";
import { createGateway, describe, eventually, expect, gatewayProgram, quiet, runProgram, test, uniqueName } from "../support/fixtures.js";
import { fencedTable } from "../support/sql.js";
import { get, put } from "../support/wire.js";

const nowhere = "postgres://user:hunter2@127.0.0.1:1/app";

describe("the program", () => {
  test("tells every variable in --help, its version, and what it does not know", async () => {
    const [help, version, unknown] = await Promise.all([runProgram(["--help"]), runProgram(["--version"]), runProgram(["serv"])]);
    expect(help.code).toBe(0);
    const some = ["DATABASE_URL", "HOST", "PORT", "ADMIN_PORT", "PALISADE_REDIS_URLS", "PALISADE_VERIFY", "PALISADE_BODY_LIMIT_BYTES"];
    for (const name of some) expect(help.out).toContain(`  ${name}\n`);
    expect(version).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    expect(unknown).toMatchObject({ code: 2, err: expect.stringContaining('no command "serv"') });
  });

  test("says with --check-config whether it would start, without connecting anywhere, and does not start if not", async () => {
    const [good, wrong, several] = await Promise.all([
      runProgram(["--check-config"], { DATABASE_URL: nowhere, PALISADE_COLOUR: "red" }),
      runProgram(["--check-config"], { DATABASE_URL: nowhere, PORT: "http", PALISADE_DURABILITY: "maybe" }),
      runProgram([], { DATABASE_URL: nowhere.replace(":1/", ":1,127.0.0.1:2/") }),
    ]);
    const unknown = expect.stringContaining("PALISADE_COLOUR is not a setting");
    expect(good).toMatchObject({ code: 0, out: expect.stringContaining("The configuration is good."), err: unknown });
    const both = /PORT must be a whole number.*\n.*PALISADE_DURABILITY must be local or sync, not "maybe"\.\n$/;
    expect(wrong).toMatchObject({ code: 2, err: expect.stringMatching(both) });
    const one = /DATABASE_URL names several hosts and must name one: .*HAProxy, a service or a DNS name .*deploy\/ha/;
    expect(several).toMatchObject({ code: 2, err: expect.stringMatching(one) });
    for (const { out, err } of [good, wrong, several]) expect(out + err).not.toMatch(/hunter2|ECONNREFUSED/);
  });

  test("makes no key without a name and scopes that mean something", async () => {
    const wrong: readonly (readonly [readonly string[], RegExp])[] = [
      [[], /--id NAME/],
      [["--id", "worker"], /--scope ACTION:PREFIX at least once/],
      [["--id", "worker", "--scope", "fly:"], /one of read, write, seal, admin, observe, a colon and a prefix/],
      [["worker"], /"worker" is not understood here/],
    ];
    const told = await Promise.all(wrong.map(([args]) => runProgram(["keygen", ...args])));
    expect(told).toEqual(wrong.map(([, sentence]) => ({ code: 2, out: "", err: expect.stringMatching(sentence) })));
  });

  test("makes keys, reads its key file again on SIGHUP or when it changes, and keeps its keys when the file is no good", async ({
    database,
    startProgram,
  }) => {
    const made = await runProgram(["keygen", "--id", "worker", "--scope", "write:"]);
    const first = JSON.parse(made.out) as { readonly key: string; readonly entry: { readonly id: string; readonly sha256: string } };
    expect(first.entry).toMatchObject({ id: "worker", scopes: ["write:"] });
    expect(JSON.stringify(first.entry)).not.toContain(first.key);
    const second = makeApiKey();
    const next = { ...first.entry, sha256: second.sha256 };
    const file = join(scratchFolder("gateway-keys"), "keys.json");
    const accept = (...keys: readonly object[]): void => writeFileSync(file, JSON.stringify({ keys }));
    accept(first.entry);
    const gateway = await startProgram({ DATABASE_URL: database.url, PALISADE_API_KEYS_FILE: file });
    const status = async ({ key }: { readonly key: string }): Promise<number> =>
      (await put(gateway.url, uniqueName(), { token: 1, value: {}, headers: ["Authorization", `Bearer ${key}`] })).status;
    expect([await status(first), await status(second)]).toEqual([201, 401]);
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    accept({ ...next, previous: { sha256: first.entry.sha256, expiresAt: soon } });
    gateway.child.signal("SIGHUP");
    await eventually(() => status(second)).toBe(201);
    expect(await status(first)).toBe(201);
    writeFileSync(file, "{");
    await eventually(() => gateway.lines.join("\n")).toContain("could not be read again");
    const ready = (await (await fetch(`${gateway.adminUrl}/ready`)).json()) as { ready: boolean; checks: unknown };
    expect(ready.ready).toBe(true);
    expect(JSON.stringify(ready.checks)).toContain("so the API keys from before are in use");
    expect(await status(second)).toBe(201);
    accept(next);
    await eventually(() => status(first)).toBe(401);
    expect(await status(second)).toBe(201);
    expect(await gateway.stop()).toMatchObject({ code: 0 });
  });

  test("on an empty database that it may not migrate is not ready and says why, until it is migrated", async ({
    postgres,
    startProgram,
  }) => {
    await using empty = await postgres.createDatabase();
    const gateway = await startProgram({ DATABASE_URL: empty.url, PALISADE_MIGRATIONS: "off" });
    const ready = async () => {
      const answer = await fetch(`${gateway.adminUrl}/ready`);
      return [answer.status, await answer.json()];
    };
    expect(await ready()).toEqual([503, expect.objectContaining({ ready: false })]);
    expect((await put(gateway.url, "x", { token: 1, value: {} })).status).toBeGreaterThanOrEqual(500);
    expect(await runProgram(["migrate"], { DATABASE_URL: empty.url })).toMatchObject({ code: 0 });
    await eventually(ready).toEqual([200, expect.objectContaining({ ready: true })]);
    expect(await put(gateway.url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
    expect(await gateway.stop()).toMatchObject({ code: 0 });
  });

  test("logs refusals with request, resource, token, trace and outcome, and never a document or a credential", async ({
    postgres,
    startProgram,
  }) => {
    await using empty = await postgres.createDatabase();
    const gateway = await startProgram({ DATABASE_URL: empty.url, PALISADE_LOG_LEVEL: "debug" });
    expect(gateway.lines.join("\n")).toContain("NO CREDENTIALS ARE CONFIGURED");
    const name = uniqueName();
    const value = { secret: "swordfish" };
    const trace = ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "X-Request-Id", "log-1"];
    await put(gateway.url, name, { token: 34, value, headers: ["Authorization", "Bearer open-sesame-open-sesame"] });
    await put(gateway.url, name, { token: 33, value, headers: trace });
    await get(gateway.url, `${name}?swordfish`);
    await gateway.stop();
    await eventually(() => gateway.lines.join("\n")).toContain('"closed"');
    const entries = gateway.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const refused = {
      requestId: "log-1",
      route: "put",
      resource: name,
      token: 33,
      outcome: "fencing_token_stale",
      status: 412,
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
      parentSpanId: "00f067aa0ba902b7",
      msg: "refused",
    };
    expect(entries).toContainEqual(expect.objectContaining(refused));
    const accepted = { route: "put", resource: name, token: 34, outcome: "ok", principal: "anonymous" };
    expect(entries).toContainEqual(expect.objectContaining(accepted));
    expect(gateway.lines.join("\n")).not.toMatch(/swordfish|sesame/);
  });

  test("tells what is fenced and the ways around it, and takes a fence away", async ({ connect, database }) => {
    const client = await connect();
    const name = await fencedTable(client, "id integer primary key", "id");
    const run = (...args: string[]) => runProgram(args, { DATABASE_URL: database.url });
    expect(await run("doctor")).toMatchObject({ code: 0, out: expect.stringContaining("No way around the fences is open.") });
    await client.query(`alter table ${name} disable trigger palisade_guard_row`);
    const [listed, sick] = await Promise.all([run("fences"), run("doctor")]);
    expect(listed).toMatchObject({ code: 0, out: expect.stringContaining(`${name}: ${name}/{id}; its trigger is disabled`) });
    const open = `open        ${name}: the trigger palisade_guard_row is disabled`;
    expect(sick).toMatchObject({ code: 1, out: expect.stringContaining(open) });
    const [taken, nameless] = await Promise.all([run("unfence", name), run("unfence")]);
    expect(taken).toMatchObject({ code: 0, out: expect.stringContaining(`${name} is not fenced any more`) });
    expect(nameless).toMatchObject({ code: 2, err: expect.stringContaining("needs the name of a table") });
    expect(await run("unfence", name)).toMatchObject({ code: 1, err: expect.stringContaining("is not fenced") });
  });
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
  test("waits while Postgres is not there, one line a second names the host, and SIGTERM ends the wait at once", async ({
    onTestFinished,
  }) => {
    const port = await takePort();
    onTestFinished(() => returnPort(port));
    const lines: { readonly msg: string; readonly reason: string; readonly time: string }[] = [];
    const child = startNode(gatewayProgram, [], {
      env: { DATABASE_URL: `postgres://a@127.0.0.1:${port}/b`, PORT: "0", ADMIN_PORT: "0" },
      onLine: (line) => line.startsWith("{") && lines.push(JSON.parse(line)),
    });
    onTestFinished(async () => void (await child.kill()));
    const waiting = () => lines.filter(({ msg }) => msg === "Postgres is not there yet");
    await eventually(() => waiting().length).toBe(2);
    expect(waiting()[0]?.reason).toBe(`nothing answers at host and port 127.0.0.1:${port} (ECONNREFUSED)`);
    const [first, second] = waiting().map(({ time }) => Date.parse(time));
    expect(Number(second) - Number(first)).toBeGreaterThan(900);
    child.signal("SIGTERM");
    const toldAt = performance.now();
    expect(await child.waitForExit()).toEqual({ code: 0, signal: null });
    expect(performance.now() - toldAt).toBeLessThan(900); // Before the next try.
  });

  test("ends with the host and how long it was waited for, and at a standby with what DATABASE_URL must name", async ({
    onTestFinished,
  }) => {
    const absent = bringUpToDate("postgres://a@127.0.0.1:1/b", createLog("silent"), { maxWaitMs: 10 });
    await expect(absent).rejects.toThrow(/^Postgres was not there within 0\.\d s: nothing answers at host and port 127\.0\.0\.1:1/);
    const pair = await PostgresPair.start({ replication: "async" });
    onTestFinished(() => pair.stop());
    const start = bringUpToDate(pair.standby.url, createLog("silent"), { maxWaitMs: 10 });
    const sentence = /is a standby, which takes no writes: DATABASE_URL must name the primary, or an address that leads to it$/;
    await expect(start).rejects.toThrow(sentence);
    const waiting = bringUpToDate(pair.standby.url, createLog("silent"));
    await pair.promote();
    await waiting;
  });

  test("G6 of a gateway that does not migrate succeeds while Postgres is silent, and on a standby, which it reads", async ({
    onTestFinished,
  }) => {
    const pair = await PostgresPair.start({ replication: "async" });
    onTestFinished(() => pair.stop());
    await migrate(pair.primary.url);
    const start = async (databaseUrl: string) => {
      const gateway = createGateway({ ...quiet, migrations: "off", connectTimeoutMs: 300, databaseUrl });
      onTestFinished(async () => void (await gateway.close()));
      await gateway.listen();
      return gateway.url;
    };
    const onStandby = await start(pair.standby.url);
    await eventually(() => get(onStandby, "x")).toMatchObject({ status: 404, json: { code: "not_found" } }); // Once it has caught up.
    expect(await put(onStandby, "x", { token: 1, value: {} })).toMatchObject({ status: 503, json: { outcome: "not_applied" } });
    await pair.primary.pause();
    const url = await start(pair.primary.url);
    await pair.primary.resume();
    await eventually(() => put(url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
  });

  test("by a role without the rights tells the command, and whose it is", async ({ connect }) => {
    await using server = await PostgresServer.start();
    const owner = await connect(server.url);
    await owner.query("create role nobody login");
    const env = { DATABASE_URL: Object.assign(new URL(server.url), { username: "nobody" }).href, PORT: "0", ADMIN_PORT: "0" };
    const advice = "Run `palisade-gateway migrate` with the DATABASE_URL of the database's owner";
    const denied = new RegExp(`palisade-gateway: the role nobody may not .*permission denied.*${advice}`);
    expect(await runProgram(["serve"], env)).toMatchObject({ code: 1, err: expect.stringMatching(denied) });
    await migrate(server.url);
    await grantRoles(server.url);
    const grant = "run `palisade-gateway grant` as the owner of the schema, and `grant palisade_gateway to nobody`";
    expect(await runProgram(["serve"], env)).toMatchObject({ code: 1, err: expect.stringContaining(grant) });
  });

  test("and every command says which part of the URL does not fit, and never the password", async ({ postgres }) => {
    const urlWith = (change: Partial<URL>): string =>
      Object.assign(new URL(postgres.url), { hostname: "127.0.0.1", password: "hunter2" }, change).href;
    for (const [change, sentence] of [
      [{ hostname: "no-such-host.invalid" }, /the host no-such-host\.invalid has no address/],
      [{ port: "1" }, /nothing answers at host and port 127\.0\.0\.1:1 \(ECONNREFUSED\)/],
      [{ username: "nobody-knows" }, /the user nobody-knows or its password is not accepted/],
      [{ search: "?sslmode=verify-full" }, /sslmode does not fit: .* offers no TLS/],
    ] as const) {
      const told: unknown = await grantRoles(urlWith(change)).catch((error: unknown) => error);
      expect(String(told)).toMatch(sentence);
      expect(String(told)).not.toContain("hunter2");
    }
    const { code, out, err } = await runProgram(["grant"], { DATABASE_URL: urlWith({ pathname: "/nowhere" }) });
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/there is no database nowhere at 127\.0\.0\.1/) });
    expect(out + err).not.toContain("hunter2");
  });
});

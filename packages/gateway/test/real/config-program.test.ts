// The program: its commands, its exit codes, and that it refuses to start on a configuration it
// does not understand.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeApiKey } from "@palisade/gateway";
import { scratchFolder } from "@palisade/testkit";
import { describe, eventually, expect, runProgram, test, uniqueName } from "../support/fixtures.js";
import { get, put } from "../support/wire.js";

const databaseUrl = "postgres://user:hunter2@127.0.0.1:1/app";

describe("the program", () => {
  test("tells every variable in --help, its version, and what it does not know", async () => {
    const [help, version, unknown] = await Promise.all([runProgram(["--help"]), runProgram(["--version"]), runProgram(["serv"])]);
    expect(help.code).toBe(0);
    for (const name of [
      "DATABASE_URL",
      "HOST",
      "PORT",
      "ADMIN_PORT",
      "PALISADE_REDIS_URLS",
      "PALISADE_VERIFY",
      "PALISADE_BODY_LIMIT_BYTES",
    ])
      expect(help.out).toContain(`  ${name}\n`);
    expect(version).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    expect(unknown).toMatchObject({ code: 2, err: expect.stringContaining('no command "serv"') });
  });

  test("says with --check-config whether it would start, without connecting anywhere", async () => {
    const [good, wrong] = await Promise.all([
      runProgram(["--check-config"], { DATABASE_URL: databaseUrl, PALISADE_COLOUR: "red" }),
      runProgram(["--check-config"], { DATABASE_URL: databaseUrl, PORT: "http", PALISADE_DURABILITY: "maybe" }),
    ]);
    expect(good).toMatchObject({
      code: 0,
      out: expect.stringContaining("The configuration is good."),
      err: expect.stringContaining("PALISADE_COLOUR is not a setting"),
    });
    expect(wrong).toMatchObject({
      code: 2,
      err: expect.stringMatching(/PORT must be a whole number.*\n.*PALISADE_DURABILITY must be local or sync, not "maybe"\.\n$/),
    });
    for (const { out, err } of [good, wrong]) expect(out + err).not.toContain("hunter2");
  });

  test("does not start on a configuration it does not understand", async () => {
    expect(await runProgram([], { DATABASE_URL: databaseUrl, HOST: "0.0.0.0" })).toMatchObject({
      code: 2,
      err: expect.stringContaining("HOST is 0.0.0.0"),
    });
  });

  test("makes a key that opens a gateway with the entry it prints", async ({ database, startProgram }) => {
    const made = await runProgram(["keygen", "--id", "worker", "--scope", "write:orders/", "--scope", "read:"]);
    const { key, entry } = JSON.parse(made.out) as { key: string; entry: { sha256: string } };
    expect(entry).toMatchObject({ id: "worker", scopes: ["write:orders/", "read:"] });
    expect(JSON.stringify(entry)).not.toContain(key);
    const file = join(scratchFolder("gateway-keys"), "keys.json");
    writeFileSync(file, JSON.stringify({ keys: [entry] }));
    const gateway = await startProgram({ DATABASE_URL: database.url, PALISADE_API_KEYS_FILE: file });
    const name = uniqueName("orders");
    expect(await put(gateway.url, name, { token: 1, value: {}, headers: ["Authorization", `Bearer ${key}`] })).toMatchObject({
      status: 201,
    });
    expect(await put(gateway.url, name, { token: 1, value: {} })).toMatchObject({ status: 401 });
    expect(await gateway.stop()).toMatchObject({ code: 0 });
  });

  test.for([
    [[], /--id NAME/],
    [["--id", "worker"], /--scope ACTION:PREFIX at least once/],
    [["--id", "a b", "--scope", "read:"], /keygen needs/],
    [["--id", "worker", "--scope", "fly:"], /one of read, write, seal, admin, observe, a colon and a prefix/],
    [["worker"], /"worker" is not understood here/],
    [["--name", "worker"], /--name/],
  ] as const)("makes no key of %j", async ([args, sentence]) => {
    expect(await runProgram(["keygen", ...args])).toMatchObject({ code: 2, out: "", err: expect.stringMatching(sentence) });
  });

  test("reads its key file again on SIGHUP or when it changes, and keeps its keys when the file is no good", async ({
    database,
    startProgram,
  }) => {
    const [first, second] = [makeApiKey(), makeApiKey()];
    const file = join(scratchFolder("gateway-keys"), "keys.json");
    const accept = (text: unknown): void => writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
    const entry = { id: "worker", scopes: ["write:"] };
    accept({ keys: [{ ...entry, sha256: first.sha256 }] });
    const gateway = await startProgram({ DATABASE_URL: database.url, PALISADE_API_KEYS_FILE: file });
    const status = async ({ key }: { key: string }): Promise<number> =>
      (await put(gateway.url, uniqueName(), { token: 1, value: {}, headers: ["Authorization", `Bearer ${key}`] })).status;
    expect([await status(first), await status(second)]).toEqual([201, 401]);
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    accept({ keys: [{ ...entry, sha256: second.sha256, previous: { sha256: first.sha256, expiresAt: soon } }] });
    gateway.child.signal("SIGHUP");
    await eventually(() => status(second)).toBe(201);
    expect(await status(first)).toBe(201);
    accept("{");
    await eventually(() => gateway.lines.join("\n")).toContain("could not be read again");
    const ready = (await (await fetch(`${gateway.adminUrl}/ready`)).json()) as { ready: boolean; checks: unknown };
    expect(ready).toMatchObject({ ready: true });
    expect(JSON.stringify(ready.checks)).toContain("so the API keys from before are in use");
    expect(await status(second)).toBe(201);
    accept({ keys: [{ ...entry, sha256: second.sha256 }] });
    await eventually(() => status(first)).toBe(401);
    expect(await status(second)).toBe(201);
    expect(await gateway.stop()).toMatchObject({ code: 0 });
  });

  test("migrates an empty database when told, and leaves it alone when told that", async ({ postgres, startProgram }) => {
    const told = await postgres.createDatabase();
    expect(await runProgram(["migrate"], { DATABASE_URL: told.url })).toMatchObject({ code: 0 });
    const gateway = await startProgram({ DATABASE_URL: told.url, PALISADE_MIGRATIONS: "off" });
    expect(await put(gateway.url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
    expect(await gateway.stop()).toMatchObject({ code: 0 });
    await told.drop();
  });

  test("without a database that is up to date is not ready, and says why", async ({ postgres, startProgram }) => {
    const empty = await postgres.createDatabase();
    const gateway = await startProgram({ DATABASE_URL: empty.url, PALISADE_MIGRATIONS: "off" });
    const ready = await fetch(`${gateway.adminUrl}/ready`);
    expect([ready.status, await ready.json()]).toEqual([503, expect.objectContaining({ ready: false })]);
    expect((await put(gateway.url, "x", { token: 1, value: {} })).status).toBeGreaterThanOrEqual(500);
    expect(await gateway.stop()).toMatchObject({ code: 0 });
    await empty.drop();
  });
});

describe("the log", () => {
  test("of a gateway that made its own schema tells refusals with request, resource, token, trace and outcome, and never a document or a credential", async ({
    postgres,
    startProgram,
  }) => {
    const empty = await postgres.createDatabase();
    const gateway = await startProgram({ DATABASE_URL: empty.url, PALISADE_LOG_LEVEL: "debug" });
    expect(gateway.lines.join("\n")).toContain("NO CREDENTIALS ARE CONFIGURED");
    const name = uniqueName();
    const trace = ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "X-Request-Id", "log-1"];
    await put(gateway.url, name, {
      token: 34,
      value: { secret: "swordfish" },
      headers: ["Authorization", "Bearer open-sesame-open-sesame"],
    });
    await put(gateway.url, name, { token: 33, value: { secret: "swordfish" }, headers: trace });
    await get(gateway.url, `${name}?swordfish`);
    await gateway.stop();
    await eventually(() => gateway.lines.join("\n")).toContain('"closed"');
    const entries = gateway.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(entries).toContainEqual(
      expect.objectContaining({
        requestId: "log-1",
        route: "put",
        resource: name,
        token: 33,
        outcome: "fencing_token_stale",
        status: 412,
        traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
        parentSpanId: "00f067aa0ba902b7",
        msg: "refused",
      }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({ route: "put", resource: name, token: 34, outcome: "ok", principal: "anonymous" }),
    );
    for (const secret of ["swordfish", "sesame"]) expect(gateway.lines.join("\n")).not.toContain(secret);
    await empty.drop();
  });
});

describe("the admin port", () => {
  test("tells that the process lives, what it depends on, and what it counted", async ({ startGateway }) => {
    const { url, adminUrl } = await startGateway();
    const name = uniqueName();
    for (const token of [33, 34, 33]) await put(url, name, { token, value: {} });
    expect(await (await fetch(`${adminUrl}/live`)).json()).toEqual({ live: true });
    const ready = (await (await fetch(`${adminUrl}/ready`)).json()) as { ready: boolean; checks: { name: string; status: string }[] };
    expect(ready.ready).toBe(true);
    expect(ready.checks).toEqual(
      expect.arrayContaining(
        ["tokens", "durability", "credentials"].map((check) => expect.objectContaining({ name: check, status: "warning" })),
      ),
    );
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
    ]) {
      expect(metrics.split("\n")).toContain(line);
    }
    expect(metrics).toContain("palisade_batch_rows_bucket");
    expect(metrics).toContain("palisade_pool_connections");
    expect(metrics).not.toContain(name);
  });
});

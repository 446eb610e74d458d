// The program as an operator runs it: its commands, its exit codes, what it says and does not say.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeApiKey } from "@palisade/gateway";
import { grantRoles, migrate } from "@palisade/guard/schema";
import { PostgresServer, returnPort, scratchFolder, startNode, takePort } from "@palisade/testkit";
import { describe, eventually, expect, gatewayProgram, runProgram, test, uniqueName } from "../support/fixtures.js";
import { fencedTable } from "../support/sql.js";
import { put } from "../support/wire.js";

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
      runProgram(["--check-config"], { DATABASE_URL: nowhere, PALISADE_COLOUR: "red", PALISADE_API_KEYS: "none" }),
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

  test("makes keys, reads them again on SIGHUP, and keeps those it has when the file is no good", async ({ database, startProgram }) => {
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
    accept(next);
    gateway.child.signal("SIGHUP");
    await eventually(() => status(second)).toBe(201);
    expect(await status(first)).toBe(401);
    writeFileSync(file, "{");
    await eventually(() => gateway.lines.join("\n")).toContain("could not be read again");
    const ready = await (await fetch(`${gateway.adminUrl}/ready`)).text();
    expect(ready).toMatch(/"ready":true.*so the API keys from before are in use/);
    expect(await status(second)).toBe(201);
    expect(await gateway.stop()).toMatchObject({ code: 0 });
  });

  test("tells what is fenced and the ways around it, and takes a fence away", async ({ connect, database }) => {
    const client = await connect();
    const name = await fencedTable(client, "id integer primary key", "id");
    const run = (...args: string[]) => runProgram(args, { DATABASE_URL: database.url });
    expect(await run("doctor")).toMatchObject({ code: 0, out: expect.stringContaining("No way around the fences is open.") });
    await client.query(`alter table ${name} disable trigger palisade_guard_update`);
    const [listed, sick] = await Promise.all([run("fences"), run("doctor")]);
    expect(listed).toMatchObject({ code: 0, out: expect.stringContaining(`${name}: ${name}/{id}; its trigger is disabled`) });
    const open = `open        ${name}: the trigger palisade_guard_update is disabled`;
    expect(sick).toMatchObject({ code: 1, out: expect.stringContaining(open) });
    const [taken, nameless] = await Promise.all([run("unfence", name), run("unfence")]);
    expect(taken).toMatchObject({ code: 0, out: expect.stringContaining(`${name} is not fenced any more`) });
    expect(nameless).toMatchObject({ code: 2, err: expect.stringContaining("needs the name of a table") });
    expect(await run("unfence", name)).toMatchObject({ code: 1, err: expect.stringContaining("is not fenced") });
  });
});

describe("a start", () => {
  test("waits for Postgres, says so once a second with the host, and ends at once by SIGTERM", async ({ onTestFinished }) => {
    const port = await takePort();
    onTestFinished(() => returnPort(port));
    const lines: { readonly msg: string; readonly reason: string; readonly time: string }[] = [];
    const child = startNode(gatewayProgram, [], {
      env: { DATABASE_URL: `postgres://a@127.0.0.1:${port}/b`, PORT: "0", ADMIN_PORT: "0", PALISADE_API_KEYS: "none" },
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

  test("by a role without the rights tells the command, and whose it is", async ({ connect }) => {
    await using server = await PostgresServer.start();
    const owner = await connect(server.url);
    await owner.query("create role nobody login");
    const env = {
      DATABASE_URL: Object.assign(new URL(server.url), { username: "nobody" }).href,
      PORT: "0",
      ADMIN_PORT: "0",
      PALISADE_API_KEYS: "none",
    };
    const advice = "Run `npx @palisade/guard migrate` or `npx @palisade/gateway migrate` with the DATABASE_URL of the database's owner";
    const denied = new RegExp(`palisade-gateway: the role nobody may not .*permission denied.*${advice}`);
    expect(await runProgram(["serve"], env)).toMatchObject({ code: 1, err: expect.stringMatching(denied) });
    await migrate(server.url);
    await grantRoles(server.url);
    const grant = "run `npx @palisade/gateway grant` as the owner of the schema, and `grant palisade_gateway to nobody`";
    expect(await runProgram(["serve"], env)).toMatchObject({ code: 1, err: expect.stringContaining(grant) });
  });
});

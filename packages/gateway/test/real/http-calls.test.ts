// POST /v1/call: a function of the database, in one transaction whose first act is the guard, under
// a role that may do nothing else.
import { createGatewayClient } from "@palisade/client";
import { connectTo, FaultProxy, type TestDatabase } from "@palisade/testkit";
import type pg from "pg";
import { test as base, describe, expect, type StartGateway, uniqueName } from "../support/fixtures.js";
import { untilSomebodyWaits } from "../support/store.js";
import { type Answer, send } from "../support/wire.js";

interface Bank {
  readonly owner: pg.Client;
  readonly role: string;
  readonly callDatabaseUrl: string;
  /** A gateway that may call what the bank has. */
  readonly url: string;
  readonly adminUrl: string;
  readonly balance: (id: number) => Promise<number>;
}

const FUNCTIONS = ["charge", "exact", "shapes", "many", "nothing", "fail", "sleep", "large", "who", "variadic", "unfenced", "twice"];
const callFunctions = [...FUNCTIONS.map((name) => `bank.${name}`), "bank.gone", "bank.run"];

const SCHEMA = `
  create schema bank;
  create table bank.accounts (id integer primary key, balance numeric not null check (balance >= 0));
  insert into bank.accounts select id, 100 from generate_series(1, 50) as id;
  select palisade.fence_table('bank.accounts', 'accounts/', 'id');
  create table bank.notes (text text);
  create function bank.charge(account integer, amount numeric default 1) returns numeric language sql as
    'update bank.accounts set balance = balance - amount where id = account returning balance';
  create function bank.exact(n numeric) returns numeric language sql as 'select n + 1';
  create function bank.shapes(list integer[], document jsonb, word text, day date, yes boolean) returns jsonb language sql as
    'select jsonb_build_array(list[2], document, word, day + 1, not yes)';
  create function bank.many(count integer, out n integer, out square integer) returns setof record language sql as
    'select i, i * i from generate_series(1, count) as i';
  create function bank.nothing() returns void language plpgsql as $$ begin insert into bank.notes values ('nothing'); end $$;
  create function bank.fail(word text) returns void language plpgsql as
    $$ begin insert into bank.notes values (word); raise exception 'no %', word using errcode = 'P0042'; end $$;
  create function bank.sleep(seconds numeric) returns void language sql as 'insert into bank.notes values (''slept''); select pg_sleep(seconds)';
  create function bank.large() returns text language sql as $$ insert into bank.notes values ('large'); select repeat('x', 2000000) $$;
  create function bank.who() returns text[] language sql as
    'select array[current_user::text, session_user::text, current_setting(''search_path'')]';
  create function bank.variadic(variadic list integer[]) returns integer language sql as 'select 1';
  create function bank.unfenced(account integer) returns void language sql as 'update bank.accounts set balance = 0 where id = account';
  create function bank.twice(n integer) returns integer language sql as 'select 1';
  create function bank.twice(n text) returns integer language sql as 'select 1';
  create function bank.secret() returns integer language sql as 'select 1';
  create procedure bank.run() language sql as 'select 1'`;

const test = base
  .extend("owner", { scope: "file" }, async ({ database }: { database: TestDatabase }, { onCleanup }): Promise<pg.Client> => {
    const owner = await connectTo(database.url);
    await owner.query(SCHEMA);
    onCleanup(() => owner.end());
    return owner;
  })
  .extend("role", { scope: "file" }, async ({ owner }: { owner: pg.Client }, { onCleanup }): Promise<string> => {
    const role = `caller_${process.pid}_${Date.now()}`;
    await owner.query(`create role ${role} login`);
    // As grants.sql gives them to palisade_app, and what the functions need.
    await owner.query(`grant usage on schema palisade, bank to ${role};
      grant execute on function palisade.guard(text, bigint, bigint, text), palisade.fence_of(text), palisade.holds_pair(text) to ${role};
      grant select, update on bank.accounts to ${role}; grant insert on bank.notes to ${role}`);
    onCleanup(async () => {
      await owner.query(`drop owned by ${role}; drop role ${role}`);
    });
    return role;
  })
  .extend("bank", async ({ database, owner, role, startGateway }): Promise<Bank> => {
    const own = new URL(database.url);
    own.username = role;
    const { url, adminUrl } = await startGateway({ callFunctions, callDatabaseUrl: own.href });
    const balance = async (id: number) =>
      Number((await owner.query("select balance from bank.accounts where id = $1", [id])).rows[0].balance);
    return { owner, role, callDatabaseUrl: own.href, url, adminUrl, balance };
  });

let accounts = 0;
const nextAccount = (): number => (accounts += 1);

function call(url: string, called: string, body: unknown, ...headers: string[]): Promise<Answer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return send(url, { method: "POST", path: `/v1/call/${called}`, headers: ["Content-Type", "application/json", ...headers], body: text });
}

function lease(id: number, token: number, seq?: number): { leases: object[] } {
  return { leases: [{ resource: `accounts/${id}`, token, ...(seq === undefined ? {} : { seq }) }] };
}

describe("a call", () => {
  test("G1 runs the function under the guard of its lease, and not after a newer holder's", async ({ bank: { url, balance } }) => {
    const id = nextAccount();
    const charge = (token: number) => call(url, "bank.charge", { ...lease(id, token), arguments: { account: id, amount: 10 } });
    expect(await charge(34)).toMatchObject({
      status: 200,
      json: { leases: [{ resource: `accounts/${id}`, token: 34 }], value: 90 },
    });
    expect(await send(url, { method: "POST", path: `/v1/resources/accounts/${id}/seal`, headers: ["Fencing-Token", "35"] })).toMatchObject({
      status: 200,
    });
    expect(await charge(34)).toMatchObject({
      status: 412,
      json: { code: "fencing_token_stale", resource: `accounts/${id}`, presentedToken: 34, currentToken: 35 },
    });
    expect(await balance(id)).toBe(90);
  });

  test("keeps every digit, and makes arguments of the types of the parameters", async ({ bank: { url } }) => {
    const exact = await call(url, "bank.exact", `{"leases":[{"resource":"x","token":5}],"arguments":{"n":12345678901234567890.5}}`);
    expect(exact.text).toContain('"value":12345678901234567891.5}');
    const given = { list: [1, 2, 3], document: { a: [null, "b"] }, word: 'it\'s "?" ü', day: "2026-02-28", yes: true };
    expect(await call(url, "bank.shapes", { leases: [{ resource: "x", token: 5 }], arguments: given })).toMatchObject({
      json: { value: [2, { a: [null, "b"] }, 'it\'s "?" ü', "2026-03-01", false] },
    });
    const many = await call(url, "bank.many", { leases: [{ resource: "x", token: 5 }], arguments: { count: 2 } });
    expect(many).toMatchObject({
      json: {
        value: [
          { n: 1, square: 1 },
          { n: 2, square: 4 },
        ],
      },
    });
    expect(await call(url, "bank.nothing", { leases: [{ resource: "x", token: 5 }] })).toMatchObject({
      status: 200,
      json: { value: null },
    });
  });

  test("G3 stores nothing when its function fails, and says with which error", async ({ bank: { url, owner, balance } }) => {
    const id = nextAccount();
    const word = uniqueName("word");
    expect(await call(url, "bank.fail", { ...lease(id, 5), arguments: { word } })).toMatchObject({
      status: 422,
      json: { code: "function_failed", sqlState: "P0042", detail: `no ${word}`, outcome: "not_applied" },
    });
    expect((await owner.query("select from bank.notes where text = $1", [word])).rowCount).toBe(0);
    expect(await call(url, "bank.charge", { ...lease(id, 5), arguments: { account: id, amount: 101 } })).toMatchObject({
      status: 422,
      json: { code: "function_failed", sqlState: "23514" },
    });
    expect(await balance(id)).toBe(100);
    const large = await call(url, "bank.large", lease(id, 5));
    expect(large).toMatchObject({
      status: 422,
      json: { code: "function_failed", detail: expect.stringContaining("larger than 1048576 bytes") },
    });
    expect((await owner.query("select from bank.notes where text = 'large'")).rowCount).toBe(0);
  });

  test("G5 writes fenced rows only under the leases it names, several if need be", async ({ bank: { url, balance } }) => {
    const [id, other] = [nextAccount(), nextAccount()];
    const foreign = await call(url, "bank.unfenced", { ...lease(id, 5), arguments: { account: other } });
    expect(foreign).toMatchObject({ status: 422, json: { code: "function_failed", sqlState: "PLS03" } });
    const both = { leases: [...lease(id, 5).leases, ...lease(other, 7).leases], arguments: { account: other } };
    expect(await call(url, "bank.unfenced", both)).toMatchObject({ status: 200 });
    expect([await balance(id), await balance(other)]).toEqual([100, 0]);
  });

  test("is made once under its sequence number", async ({ bank: { url, balance } }) => {
    const id = nextAccount();
    const charge = () => call(url, "bank.charge", { ...lease(id, 5, 1), arguments: { account: id } });
    expect(await charge()).toMatchObject({ status: 200 });
    expect(await charge()).toMatchObject({ status: 409, json: { code: "sequence_out_of_order", currentSeq: 1 } });
    expect(await balance(id)).toBe(99);
  });

  test("G1 waits for the holder before it, and 40 of them at once lose no update", async ({ bank: { url, balance } }) => {
    const id = nextAccount();
    const charges = Array.from({ length: 40 }, () => call(url, "bank.charge", { ...lease(id, 5), arguments: { account: id } }));
    expect((await Promise.all(charges)).map(({ status }) => status)).toEqual(charges.map(() => 200));
    expect(await balance(id)).toBe(60);
  });

  test("runs under the role of its own URL, which may not write the fences", async ({ bank: { url, adminUrl, role, callDatabaseUrl } }) => {
    const { json } = await call(url, "bank.who", lease(nextAccount(), 5));
    expect(json.value).toEqual([role, role, expect.stringContaining("public")]);
    const ready = (await (await fetch(`${adminUrl}/ready`)).json()) as { readonly checks: readonly object[] };
    expect(ready.checks).toContainEqual({ name: "calls", status: "ok", detail: `functions run as ${role}` });
    await using caller = await connectTo(callDatabaseUrl);
    await expect(caller.query("update palisade.resources set token = 1")).rejects.toMatchObject({ code: "42501" });
  });
});

describe("a call with an end that is in doubt", () => {
  async function throughProxy({ callDatabaseUrl }: Bank, startGateway: StartGateway) {
    const server = new URL(callDatabaseUrl);
    const proxy = await FaultProxy.start({ upstream: { host: server.hostname, port: Number(server.port) } });
    const gateway = await startGateway({
      callFunctions,
      callDatabaseUrl: proxy.urlOf(callDatabaseUrl),
      lockWaitMs: 9_000,
      writeTimeoutMs: 12_000,
    });
    return { proxy, url: gateway.url, [Symbol.asyncDispose]: () => proxy.stop() };
  }

  test("G3 is answered outcome_unknown when the connection is lost during COMMIT, and the client finds out", async ({
    bank,
    startGateway,
  }) => {
    await using bench = await throughProxy(bank, startGateway);
    const { proxy, url } = bench;
    const [id, latch] = [nextAccount(), `latch_${accounts}`];
    const { owner } = bank;
    await owner.query(`create table bank.${latch} (); grant select on bank.${latch} to public;
      create function bank.${latch}() returns trigger language plpgsql as $$ begin lock table bank.${latch} in access share mode; return null; end $$;
      create constraint trigger ${latch} after update on bank.accounts initially deferred for each row when (new.id = ${id}) execute function bank.${latch}()`);
    await using holder = await connectTo(bank.callDatabaseUrl.replace(bank.role, "postgres"));
    await holder.query(`begin; lock table bank.${latch}`);
    const client = createGatewayClient({ url, timeoutMs: 30_000 });
    const answers: string[] = [];
    const watching = createGatewayClient({
      url,
      timeoutMs: 30_000,
      fetch: async (...given) => {
        const response = await fetch(...given);
        answers.push(((await response.clone().json()) as { code?: string }).code ?? "ok");
        return response;
      },
    });
    const charged = watching.call("bank.charge", { account: id }, { leases: [{ resource: `accounts/${id}`, token: 5, seq: 1 }] });
    await untilSomebodyWaits(owner);
    proxy.cut();
    await expect.poll(() => answers).toEqual(["outcome_unknown"]);
    await holder.query("commit");
    expect(await charged).toEqual({ ok: true, replayed: true });
    expect(answers.at(-1)).toBe("sequence_out_of_order");
    expect(await bank.balance(id)).toBe(99);
    const next = await client.call<number>("bank.charge", { account: id }, { leases: [{ resource: `accounts/${id}`, token: 5, seq: 2 }] });
    expect(next).toEqual({ ok: true, value: 98, text: "98", replayed: false });
  });

  test("G3 is certainly not applied when the connection is lost before COMMIT", async ({ bank, startGateway }) => {
    await using bench = await throughProxy(bank, startGateway);
    const { proxy, url } = bench;
    const id = nextAccount();
    await bank.owner.query("begin");
    await bank.owner.query("select from bank.accounts where id = $1 for update", [id]);
    const charged = call(url, "bank.charge", { ...lease(id, 5), arguments: { account: id } });
    await using observer = await connectTo(bank.callDatabaseUrl.replace(bank.role, "postgres"));
    await untilSomebodyWaits(observer);
    proxy.cut();
    expect(await charged).toMatchObject({ status: 503, json: { code: "unavailable", outcome: "not_applied" } });
    await bank.owner.query("commit");
    expect(await bank.balance(id)).toBe(100);
  });

  test("G3 is rolled back when its function takes too long, or waits for a row too long", async ({ bank, startGateway }) => {
    const { callDatabaseUrl, owner } = bank;
    const { url } = await startGateway({ callFunctions, callDatabaseUrl, writeTimeoutMs: 500, lockWaitMs: 200 });
    const id = nextAccount();
    expect(await call(url, "bank.sleep", { ...lease(id, 5), arguments: { seconds: 3600 } })).toMatchObject({
      status: 422,
      json: { code: "function_failed", sqlState: "57014" },
    });
    await owner.query("begin");
    await owner.query("select palisade.guard($1, 5)", [`accounts/${id}`]);
    expect(await call(url, "bank.charge", { ...lease(id, 5), arguments: { account: id } })).toMatchObject({
      status: 409,
      json: { code: "contention" },
    });
    await owner.query("rollback");
    expect((await owner.query("select from bank.notes where text = 'slept'")).rowCount).toBe(0);
  });
});

describe("a call is refused", () => {
  const one = { leases: [{ resource: "x", token: 5 }] };
  const wrong: readonly (readonly [what: string, called: string, body: unknown, status: number, code: string])[] = [
    ["to a procedure", "bank.run", one, 404, "function_unknown"],
    ["to a function that its role may call and that is not in the list", "bank.secret", one, 404, "function_unknown"],
    ["to a function that is in the list and not in the database", "bank.gone", one, 404, "function_unknown"],
    ["to a function of two versions", "bank.twice", one, 404, "function_unknown"],
    ["to a variadic function", "bank.variadic", one, 404, "function_unknown"],
    ["to no name", "", one, 404, "function_unknown"],
    ["to a name with a quote", "bank.charge%22", one, 404, "function_unknown"],
    ["without a lease", "bank.nothing", { leases: [] }, 400, "json_invalid"],
    ["without leases", "bank.nothing", {}, 400, "json_invalid"],
    ["with a body that is no object", "bank.nothing", [], 400, "json_invalid"],
    ["with something beside leases and arguments", "bank.nothing", { ...one, argument: {} }, 400, "json_invalid"],
    ["with a member twice", "bank.nothing", '{"leases":[{"resource":"x","token":5}],"leases":[]}', 400, "json_invalid"],
    ["with a resource twice", "bank.nothing", { leases: [...one.leases, ...one.leases] }, 400, "json_invalid"],
    ["with a bad name", "bank.nothing", { leases: [{ resource: "a/../b", token: 5 }] }, 400, "resource_name_invalid"],
    ["with a token that is text", "bank.nothing", { leases: [{ resource: "x", token: "5" }] }, 400, "json_invalid"],
    ["without a token", "bank.nothing", { leases: [{ resource: "x" }] }, 428, "fencing_token_required"],
    ["with arguments in an array", "bank.charge", { ...one, arguments: [1] }, 400, "json_invalid"],
    ["with an argument that it does not have", "bank.charge", { ...one, arguments: { account: 1, cents: 1 } }, 400, "json_invalid"],
    [
      "with __proto__ as an argument",
      "bank.charge",
      '{"leases":[{"resource":"x","token":5}],"arguments":{"account":1,"__proto__":1}}',
      400,
      "json_invalid",
    ],
    ["without an argument that it needs", "bank.charge", { ...one, arguments: { amount: 1 } }, 400, "json_invalid"],
    ["with an argument of another type", "bank.charge", { ...one, arguments: { account: "seven" } }, 422, "function_failed"],
  ];
  test.for(wrong)("%s", async ([, called, body, status, code], { bank: { url } }) => {
    expect(await call(url, called, body)).toMatchObject({ status, json: { code } });
  });

  test("with headers that it does not know, and with a token that is malformed", async ({ bank: { url } }) => {
    expect(await call(url, "bank.nothing", one, "If-Match", '"1"')).toMatchObject({ json: { code: "precondition_unsupported" } });
    expect(await call(url, "bank.nothing", one, "Idempotency-Key", "k")).toMatchObject({ json: { code: "precondition_unsupported" } });
    expect(await call(url, "bank.nothing", one, "Fencing-Token", "x")).toMatchObject({ json: { code: "fencing_token_malformed" } });
    expect(await call(url, "bank.nothing", { leases: [{ resource: "y" }] }, "Fencing-Token", "5;seq=1")).toMatchObject({ status: 200 });
    expect(await call(url, "bank.nothing", { leases: [{ resource: "y" }] }, "Fencing-Token", "5;seq=1")).toMatchObject({ status: 409 });
    expect(await send(url, { method: "GET", path: "/v1/call/bank.nothing" })).toMatchObject({ status: 405, headers: { allow: "POST" } });
  });

  test("by a gateway that allows no function, and by one whose database is not there", async ({ gateway, startGateway }) => {
    expect(await call(gateway.url, "bank.charge", one)).toMatchObject({ status: 404, json: { code: "function_unknown" } });
    const { url } = await startGateway({ callFunctions, callDatabaseUrl: "postgres://nobody@127.0.0.1:1/app" });
    expect(await call(url, "bank.charge", one)).toMatchObject({ status: 503, json: { code: "unavailable", outcome: "not_applied" } });
  });
});

// The typed client against a real gateway: what it demands of an answer is what the gateway sends,
// and what a proxy loses on the way is told as it was stored.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createGatewayClient, type GatewayClientOptions, rawJson, withResource } from "@palisade/client";
import { createFakeClient, FakeGateway } from "@palisade/client/testing";
import { createFakeLocker } from "@palisade/lock/testing";
import { FaultProxy, returnPort, takePort } from "@palisade/testkit";
import { test as base, describe, expect, uniqueName } from "../support/fixtures.js";

/** For tries that end when the proxy ends them, and not before. */
const patient = { timeoutMs: 30_000, retry: { attempts: 8, firstPauseMs: 20, longestPauseMs: 40 } } as const;

const test = base
  .extend("direct", ({ gateway }) => createGatewayClient({ url: `${gateway.url}/` }))
  /** What @palisade/client/testing makes is held against the real one. */
  .extend("clients", ({ direct }) => ({ real: () => direct, fake: () => createFakeClient() }))
  .extend("proxied", async ({ gateway }, { onCleanup }) => {
    const proxy = await FaultProxy.start({ upstream: { host: "127.0.0.1", port: Number(new URL(gateway.url).port) } });
    onCleanup(() => proxy.stop());
    const client = (options: Partial<GatewayClientOptions> = {}) =>
      createGatewayClient({ url: `http://127.0.0.1:${proxy.port}`, ...patient, ...options });
    return { proxy, client };
  });

describe.each(["real", "fake"] as const)("calls of a %s gateway", (kind) => {
  test("go through a document's whole life", async ({ clients }) => {
    const direct = clients[kind]();
    const name = uniqueName("straße 42");
    const [signal, replayed] = [new AbortController().signal, false];
    const lease = { token: 5, signal };
    const value = { n: 2, m: 3 };
    const text = kind === "real" ? '{"m": 3, "n": 2}' : '{"n":2,"m":3}'; // As Postgres writes it, and as it was sent.
    const stored = { ok: true, resource: name, token: 5, rev: 1, created: true, replayed };
    expect(await direct.put(name, { n: 1, gone: true }, { lease })).toEqual(stored);
    expect(await direct.put(name, { n: 2 }, { lease, seq: 1, ifMatch: 1 })).toEqual({ ...stored, rev: 2, created: false });
    expect(await direct.patch(name, { m: 3 }, { lease, seq: 2 })).toEqual({
      ok: true,
      resource: name,
      token: 5,
      rev: 3,
      value,
      text,
      replayed,
    });
    expect(await direct.get(name)).toEqual({ ok: true, modified: true, token: 5, rev: 3, value, text });
    expect(await direct.get(name, { ifNoneMatch: 3 })).toEqual({ ok: true, modified: false, token: 5, rev: 3 });
    expect(await direct.get(name, { ifNoneMatch: 2 })).toMatchObject({ modified: true, rev: 3 });
    expect(await direct.seal(name, { token: 6 })).toEqual({ ok: true, resource: name, token: 6, rev: 3, value, text });
    expect(await direct.put(name, {}, { token: 5 })).toMatchObject({
      code: "fencing_token_stale",
      presentedToken: 5,
      currentToken: 6,
      status: 412,
    });
    expect(await direct.put(name, {}, { token: 6, ifMatch: 7 })).toMatchObject({ code: "etag_mismatch", currentETag: '"3"' });
    expect(await direct.delete(name, { token: 6 })).toEqual({ ok: true, resource: name, token: 6, rev: 4, replayed });
    expect(await direct.get(name)).toMatchObject({ ok: false, code: "not_found", outcome: "not_applied", currentToken: 6, attempts: 1 });
    expect(await direct.put(name, {}, { token: 6, ifNoneMatch: "*" })).toMatchObject({ ok: true, created: true });
    const unwritten = uniqueName();
    expect(await direct.seal(unwritten, { token: 5 })).toEqual({
      ok: true,
      resource: unwritten,
      token: 5,
      rev: 0,
      value: null,
      text: "null",
    });
  });

  test("of a transaction and of the list carry what their options say", async ({ clients }) => {
    const direct = clients[kind]();
    const prefix = `${uniqueName("list")}/`;
    const [one, other, sealed] = ["1", "2", "3"].map((name) => prefix + name) as [string, string, string];
    const operations = [
      { op: "put", resource: one, value: rawJson("12345678901234567890") },
      { op: "put", resource: other, value: { n: 1 }, token: 7, ifNoneMatch: "*" },
      { op: "seal", resource: sealed },
    ] as const;
    expect(await direct.transaction(operations, { token: 5 })).toEqual({
      ok: true,
      replayed: false,
      results: [
        { resource: one, token: 5, rev: 1 },
        { resource: other, token: 7, rev: 1 },
        { resource: sealed, token: 5, rev: 0, value: null },
      ],
    });
    const stale = [one, other].map((resource) => ({ op: "seal", resource }) as const);
    expect(await direct.transaction(stale, { token: 6 })).toMatchObject({ code: "fencing_token_stale", operation: 1, currentToken: 7 });
    // The fake rounds numbers in a transaction.
    expect(await direct.get(one)).toMatchObject({ text: kind === "real" ? "12345678901234567890" : "12345678901234567000" });
    const page = await direct.list({ prefix, include: "documents", limit: 1 });
    expect(page).toMatchObject({
      ok: true,
      items: [{ resource: one, token: 5, value: expect.any(Number) }],
      nextCursor: expect.any(String),
    });
    const next = await direct.list({ prefix, cursor: (page.ok && page.nextCursor) || "", tombstones: "include" });
    expect(next).toMatchObject({ items: [{ resource: other }, { resource: sealed }], nextCursor: null });
  });

  test("of an operator tell history, fence, a moved fence and what was refused", async ({ clients }) => {
    const direct = clients[kind]();
    const name = uniqueName();
    for (const token of [5, 6, 7]) await direct.put(name, { token }, { token });
    await direct.seal(name, { token: 8 });
    const entries = [3, 2].map((rev) => ({ rev, token: rev + 4 }));
    expect(await direct.history(name, { limit: 2 })).toMatchObject({ ok: true, resource: name, entries, nextBefore: 2 });
    expect(await direct.history(name, { before: 2 })).toMatchObject({ entries: [{ rev: 1, op: "put" }], nextBefore: null });
    expect(await direct.fence(name)).toMatchObject({ ok: true, resource: name, token: 8, rev: 3, holder: "anonymous" });
    const change = { action: "raise", token: 20, reason: "drill" } as const;
    expect(await direct.changeFence(name, change)).toEqual({ ok: true, resource: name, previousToken: 8, token: 20 });
    expect(await direct.changeFence(name, change)).toMatchObject({ ok: false, code: "fence_unchanged", currentToken: 20 });
    expect(await direct.put(name, {}, { token: 19 })).toMatchObject({ ok: false, code: "fencing_token_stale" });
    expect(await direct.refused({ prefix: name })).toMatchObject({ ok: true, entries: [{ resource: name, presentedToken: 19 }] });
    expect(await direct.fence(`${name}/none`)).toMatchObject({ ok: false, code: "not_found" });
  });
});

test("G1 the fakes of client and lock go together; of a gateway that cannot be reached, the client says so", async () => {
  const gateway = new FakeGateway();
  const [one, other] = [createFakeClient({ gateway }), createFakeClient({ gateway, retry: { attempts: 2, firstPauseMs: 1 } })];
  await using locker = createFakeLocker();
  const late = await locker.acquire("orders/1");
  await late.release();
  const increment = (order: { n: number } | null) => ({ n: (order?.n ?? 0) + 1 });
  for (const client of [one, other]) await withResource(locker, client, "orders/1", increment);
  expect(await other.get("orders/1")).toMatchObject({ value: { n: 2 }, rev: 2 });
  for (let times = 0; times < 2; times += 1)
    expect(await one.put("orders/1", {}, { token: late.token })).toMatchObject({ code: "fencing_token_stale", outcome: "not_applied" });
  expect(await other.refused()).toMatchObject({ entries: [{ resource: "orders/1", times: 2 }] });
  gateway.reachable = false;
  expect(await one.get("orders/1")).toMatchObject({ code: "connection_failed", outcome: "not_applied", attempts: 1 });
  expect(await other.put("orders/1", {}, { token: 9, seq: 1 })).toMatchObject({ code: "connection_failed", attempts: 2 });
});

describe("calls", () => {
  test("G3 to another server, or redirected there, are not understood, and nothing is sent on", async ({ gateway, direct }) => {
    const probes = createGatewayClient({ url: gateway.adminUrl });
    expect(await probes.put("x", {}, { token: 1 })).toMatchObject({ code: "answer_not_understood", status: 404, outcome: "unknown" });
    const server = createServer(({ url }, response) => void response.writeHead(307, { Location: `${gateway.url}${url}` }).end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const client = createGatewayClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
      const name = uniqueName();
      expect(await client.put(name, {}, { token: 5, seq: 1 })).toMatchObject({ code: "answer_not_understood", attempts: 1 });
      expect(await direct.get(name)).toMatchObject({ code: "not_found" });
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

describe("lost answers", () => {
  test("G3 to a write with a number are asked for again, and it is stored once", async ({ proxied: { proxy, client }, direct }) => {
    const name = uniqueName();
    proxy.dropReplies();
    const written = client().put(name, { n: 1 }, { token: 5, seq: 1 });
    await proxy.until(({ replies }) => replies.droppedBytes > 0, patient.timeoutMs);
    expect(await direct.get(name)).toMatchObject({ ok: true, rev: 1 });
    await proxy.heal();
    expect(await written).toEqual({ ok: true, resource: name, token: 5, rev: 1, created: false, replayed: true });
    expect(await direct.get(name)).toMatchObject({ rev: 1 });
  });

  test.for([
    ["for all", { seq: 3 }, {}],
    ["of one operation", {}, { seq: 3 }],
  ] as const)(
    "G3 to a transaction with a number %s are asked for again, and it is stored once",
    async ([, all, one], { proxied, direct }) => {
      const { proxy, client } = proxied;
      const [first, second] = [uniqueName(), uniqueName()];
      await direct.put(second, 0, { token: 4 });
      const operations = [
        { op: "put", resource: first, value: 1 },
        { op: "put", resource: second, value: 1, ...one },
      ] as const;
      proxy.dropReplies();
      const stored = client().transaction(operations, { token: 5, ...all });
      await proxy.until(({ replies }) => replies.droppedBytes > 0, patient.timeoutMs);
      expect(await direct.get(second)).toMatchObject({ rev: 2 });
      await proxy.heal();
      const results = [first, second].map((resource, index) => ({ resource, token: 5, rev: index + 1 }));
      expect(await stored).toEqual({ ok: true, results, replayed: true });
      expect(await direct.get(first)).toMatchObject({ rev: 1 });
    },
  );

  test("G1 are not asked for again once a newer holder has written: the retry is told that it is stale", async ({ proxied, direct }) => {
    const { proxy, client } = proxied;
    const name = uniqueName();
    proxy.dropRequests();
    const written = client().put(name, { by: 5 }, { token: 5, seq: 1 });
    await proxy.until(({ requests }) => requests.droppedBytes > 0, patient.timeoutMs);
    expect(await direct.put(name, { by: 6 }, { token: 6 })).toMatchObject({ ok: true });
    await proxy.heal();
    // The second try cannot know what became of the first.
    expect(await written).toMatchObject({ ok: false, code: "fencing_token_stale", outcome: "unknown", attempts: 2 });
    expect(await direct.get(name)).toMatchObject({ value: { by: 6 } });
  });

  test("of the caller's own signal end the call", async ({ proxied: { proxy, client } }) => {
    const caller = new AbortController();
    proxy.dropReplies();
    const read = client().get("x", { signal: caller.signal });
    await proxy.until(({ replies }) => replies.droppedBytes > 0, patient.timeoutMs);
    caller.abort();
    expect(await read).toMatchObject({ ok: false, code: "aborted", attempts: 1 });
  });

  test("of a gateway that restarts are waited for: the client's own defaults outlast it", async ({
    database,
    startProgram,
    onTestFinished,
  }) => {
    const port = await takePort();
    onTestFinished(() => returnPort(port));
    const env = { DATABASE_URL: database.url, PORT: String(port) };
    const first = await startProgram(env);
    const client = createGatewayClient({ url: first.url });
    const name = uniqueName();
    expect(await client.put(name, {}, { token: 5, seq: 1 })).toMatchObject({ ok: true });
    expect(await first.stop()).toMatchObject({ code: 0 });
    const written = client.put(name, { n: 2 }, { token: 5, seq: 2 });
    const read = client.get(name);
    await startProgram(env);
    expect(await written).toMatchObject({ ok: true, rev: 2 });
    expect(await read).toMatchObject({ ok: true });
  });
});

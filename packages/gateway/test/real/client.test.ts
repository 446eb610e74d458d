// The typed client against a real gateway, through a real proxy that loses what the test tells it
// to.
import { createGatewayClient, type GatewayClientOptions, rawJson } from "@palisade/client";
import { FaultProxy } from "@palisade/testkit";
import { test as base, describe, eventually, expect, uniqueName } from "../support/fixtures.js";
import { RawConnection } from "../support/wire.js";

const hurried = { timeoutMs: 100, retry: { attempts: 8, firstPauseMs: 20, longestPauseMs: 40 } } as const;
/** For tries that end when the proxy ends them, and not before. */
const patient = { timeoutMs: 30_000 } as const;

/**
 * Keeps sending after the client has timed out: the abandoned request still reaches the gateway.
 */
const unstoppable: typeof fetch = (url, { signal, ...rest } = {}) => {
  const answer = fetch(url, rest);
  answer.catch(() => undefined); // The proxy cuts it after the test, unawaited.
  const givenUp = new Promise<never>((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  return Promise.race([answer, givenUp]);
};

const test = base.extend("proxied", async ({ gateway }, { onCleanup }) => {
  const proxy = await FaultProxy.start({ upstream: { host: "127.0.0.1", port: Number(new URL(gateway.url).port) } });
  onCleanup(() => proxy.stop());
  const client = (options: Partial<GatewayClientOptions> = {}) =>
    createGatewayClient({ url: `http://127.0.0.1:${proxy.port}`, ...hurried, ...options });
  return { proxy, client };
});

const fresh = (): AbortSignal => new AbortController().signal;

describe("calls", () => {
  test("go through a document's whole life", async ({ gateway }) => {
    const client = createGatewayClient({ url: `${gateway.url}/` });
    const name = uniqueName("straße 42");
    const lease = { token: 5, signal: fresh() };
    expect(await client.put(name, { n: 1, gone: true }, { lease })).toEqual({
      ok: true,
      resource: name,
      token: 5,
      rev: 1,
      created: true,
      replayed: false,
    });
    expect(await client.put(name, { n: 2 }, { lease, seq: 1, ifMatch: 1 })).toMatchObject({ ok: true, rev: 2, created: false });
    expect(await client.patch(name, { m: 3 }, { lease, seq: 2 })).toMatchObject({
      ok: true,
      rev: 3,
      value: { n: 2, m: 3 },
      text: '{"m": 3, "n": 2}',
    });
    expect(await client.get(name)).toEqual({ ok: true, modified: true, token: 5, rev: 3, value: { n: 2, m: 3 }, text: '{"m": 3, "n": 2}' });
    expect(await client.get(name, { ifNoneMatch: 3 })).toEqual({ ok: true, modified: false, token: 5, rev: 3 });
    expect(await client.seal(name, { token: 6 })).toEqual({
      ok: true,
      resource: name,
      token: 6,
      rev: 3,
      value: { n: 2, m: 3 },
      text: '{"m": 3, "n": 2}',
    });
    expect(await client.delete(name, { token: 6 })).toEqual({ ok: true, resource: name, token: 6, rev: 4, replayed: false });
    expect(await client.get(name)).toMatchObject({ ok: false, code: "not_found", currentToken: 6, attempts: 1 });
    expect(await client.put(name, {}, { token: 6, ifNoneMatch: "*" })).toMatchObject({ ok: true, created: true });
  });

  test("of a transaction and of the list carry what their options say", async ({ gateway }) => {
    const client = createGatewayClient({ url: gateway.url });
    const [one, other] = [`${uniqueName("list")}/1`, `${uniqueName("list")}/2`];
    const done = await client.transaction(
      [
        { op: "put", resource: one, value: rawJson("12345678901234567890") },
        { op: "put", resource: other, value: { n: 1 }, token: 7, ifNoneMatch: "*" },
      ],
      { token: 5 },
    );
    expect(done).toMatchObject({
      ok: true,
      replayed: false,
      results: [
        { resource: one, token: 5, rev: 1 },
        { resource: other, token: 7, rev: 1 },
      ],
    });
    expect(
      await client.transaction(
        [
          { op: "delete", resource: one },
          { op: "seal", resource: other },
        ],
        { token: 6 },
      ),
    ).toMatchObject({ ok: false, code: "fencing_token_stale", operation: 1, currentToken: 7 });
    expect(await client.list({ prefix: one, include: "documents" })).toMatchObject({
      ok: true,
      items: [{ resource: one, token: 5 }],
      nextCursor: null,
    });
    expect((await client.get(one)) as { text?: string }).toMatchObject({ text: "12345678901234567890" });
  });

  test("that misuse the client throw before anything is sent", async ({ gateway }) => {
    const client = createGatewayClient({ url: gateway.url, fetch: () => expect.unreachable("nothing may be sent") });
    for (const name of ["", "..", "a/./b", "/a", "a//b"]) await expect(client.put(name, {}, { token: 1 })).rejects.toThrow(RangeError);
    for (const token of [0, -1, 1.5, Number.NaN, 1e15]) await expect(client.put("a", {}, { token })).rejects.toThrow(RangeError);
    await expect(client.put("a", undefined, { token: 1 })).rejects.toThrow(TypeError);
    await expect(client.put("a", {}, { token: 1, seq: 0 })).rejects.toThrow(RangeError);
    expect(() => rawJson("{oops")).toThrow(SyntaxError);
  });
});

describe("refusals", () => {
  test("that are decided are told once and never retried", async ({ gateway }) => {
    const name = uniqueName();
    let calls = 0;
    const counting: typeof fetch = (...args) => {
      calls += 1;
      return fetch(...args);
    };
    const client = createGatewayClient({ url: gateway.url, fetch: counting });
    await client.put(name, {}, { token: 9 });
    calls = 0;
    expect(await client.put(name, {}, { token: 8, seq: 1 })).toMatchObject({
      ok: false,
      code: "fencing_token_stale",
      outcome: "not_applied",
      presentedToken: 8,
      currentToken: 9,
      status: 412,
      attempts: 1,
    });
    expect(await client.put(name, {}, { token: 9, ifMatch: 7 })).toMatchObject({ ok: false, code: "etag_mismatch", currentETag: '"1"' });
    expect(await client.put(`${"x".repeat(600)}`, {}, { token: 9 })).toMatchObject({ ok: false, code: "resource_name_invalid" });
    expect(calls).toBe(3);
  });

  test("G3 of a number that was used before are refusals: the first try of a write is never taken for stored", async ({ gateway }) => {
    const [client, name] = [createGatewayClient({ url: gateway.url }), uniqueName()];
    expect(await client.put(name, { n: 1 }, { token: 5, seq: 1 })).toMatchObject({ ok: true });
    expect(await client.put(name, { n: 2 }, { token: 5, seq: 1 })).toMatchObject({
      ok: false,
      code: "sequence_out_of_order",
      outcome: "not_applied",
      attempts: 1,
    });
    expect(await client.get(name)).toMatchObject({ value: { n: 1 } });
  });

  test("by something else than the gateway leave the outcome open", async ({ gateway }) => {
    const client = createGatewayClient({ url: gateway.adminUrl });
    expect(await client.put("x", {}, { token: 1 })).toMatchObject({
      ok: false,
      code: "answer_not_understood",
      status: 404,
      outcome: "unknown",
    });
  });

  test("because of too many requests are waited out", async ({ startGateway }) => {
    const { url } = await startGateway({ maxRequests: 1 });
    const holding = new RawConnection(url);
    holding.send(
      `PUT /v1/resources/held HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nFencing-Token: 5\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`,
    );
    await holding.receives(/100/);
    const refused = fetch.bind(undefined);
    const client = createGatewayClient({
      url,
      retry: hurried.retry, // Not the timeout: on a busy machine an answer may take longer, and this write could not be repeated.
      fetch: async (...args) => {
        const response = await refused(...args);
        if (response.status === 503) {
          holding.send("{}");
          await holding.receives(/ 201 /);
        }
        return response;
      },
    });
    expect(await client.put(uniqueName(), {}, { token: 1 })).toMatchObject({ ok: true });
    holding.socket.destroy();
  });
});

describe("lost answers", () => {
  test("G3 to a write without a number are told as unknown, after one try", async ({ proxied: { proxy, client }, gateway }) => {
    const name = uniqueName();
    proxy.dropReplies();
    expect(await client({ fetch: unstoppable }).put(name, { n: 1 }, { token: 5 })).toMatchObject({
      ok: false,
      code: "timed_out",
      outcome: "unknown",
      attempts: 1,
    });
    await eventually(() => createGatewayClient({ url: gateway.url }).get(name)).toMatchObject({ ok: true, rev: 1 });
  });

  test("G3 to a write with a number are asked for again, and it is stored once", async ({ proxied: { proxy, client }, gateway }) => {
    const name = uniqueName();
    proxy.dropReplies();
    const written = client(patient).put(name, { n: 1 }, { token: 5, seq: 1 });
    await proxy.until(({ replies }) => replies.droppedBytes > 0, patient.timeoutMs);
    expect(await createGatewayClient({ url: gateway.url }).get(name)).toMatchObject({ ok: true, rev: 1 });
    await proxy.heal();
    expect(await written).toEqual({ ok: true, resource: name, token: 5, rev: 1, created: false, replayed: true });
    expect(await client().get(name)).toMatchObject({ rev: 1 });
  });

  test.for([
    ["for all", { seq: 3 }, {}],
    ["of one operation", {}, { seq: 3 }],
  ] as const)(
    "G3 to a transaction with a number %s are asked for again, and it is stored once",
    async ([, all, one], { proxied, gateway }) => {
      const { proxy, client } = proxied;
      const [first, second] = [uniqueName(), uniqueName()];
      const direct = createGatewayClient({ url: gateway.url });
      await direct.put(second, 0, { token: 4 });
      const operations = [
        { op: "put", resource: first, value: 1 },
        { op: "put", resource: second, value: 1, ...one },
      ] as const;
      proxy.dropReplies();
      const stored = client(patient).transaction(operations, { token: 5, ...all });
      await proxy.until(({ replies }) => replies.droppedBytes > 0, patient.timeoutMs);
      expect(await direct.get(second)).toMatchObject({ rev: 2 });
      await proxy.heal();
      expect(await stored).toEqual({
        ok: true,
        results: [
          { resource: first, token: 5, rev: 1 },
          { resource: second, token: 5, rev: 2 },
        ],
        replayed: true,
      });
      expect(await direct.get(first)).toMatchObject({ rev: 1 });
    },
  );

  test("G3 to a transaction without a number are told as unknown, after one try", async ({ proxied: { proxy, client } }) => {
    proxy.dropReplies();
    const stored = client({ fetch: unstoppable }).transaction([{ op: "put", resource: uniqueName(), value: 1 }], { token: 5 });
    expect(await stored).toMatchObject({ ok: false, code: "timed_out", outcome: "unknown", attempts: 1 });
  });

  test("G1 are not asked for again once a newer holder has written: the retry is told that it is stale", async ({
    proxied: { proxy, client },
    gateway,
  }) => {
    const name = uniqueName();
    const direct = createGatewayClient({ url: gateway.url });
    proxy.dropRequests();
    const written = client(patient).put(name, { by: 5 }, { token: 5, seq: 1 });
    await proxy.until(({ requests }) => requests.droppedBytes > 0, patient.timeoutMs);
    expect(await direct.put(name, { by: 6 }, { token: 6 })).toMatchObject({ ok: true });
    await proxy.heal();
    // The second try cannot know what became of the first.
    expect(await written).toMatchObject({ ok: false, code: "fencing_token_stale", outcome: "unknown", attempts: 2 });
    expect(await direct.get(name)).toMatchObject({ value: { by: 6 } });
  });

  test("G3 to a write whose number is past are told as unknown: what is stored is a later write, not this one", async ({
    proxied: { proxy, client },
    gateway,
  }) => {
    const name = uniqueName();
    const direct = createGatewayClient({ url: gateway.url });
    proxy.dropRequests();
    const written = client(patient).put(name, { n: 1 }, { token: 5, seq: 1 });
    await proxy.until(({ requests }) => requests.droppedBytes > 0, patient.timeoutMs);
    expect(await direct.put(name, { n: 2 }, { token: 5, seq: 2 })).toMatchObject({ ok: true });
    await proxy.heal();
    expect(await written).toMatchObject({ ok: false, code: "sequence_out_of_order", outcome: "unknown", currentSeq: 2 });
    expect(await direct.get(name)).toMatchObject({ rev: 1, value: { n: 2 } });
  });

  test("of a gateway that is not there are not applied, and tried again until it is", async ({ proxied: { proxy, client } }) => {
    await proxy.refuse();
    expect(await client({ ...patient, retry: { attempts: 2, firstPauseMs: 1 } }).put(uniqueName(), {}, { token: 5 })).toMatchObject({
      ok: false,
      attempts: 2,
    });
    const written = client(patient).put(uniqueName(), {}, { token: 5, seq: 1 });
    await proxy.heal();
    expect(await written).toMatchObject({ ok: true });
  });
});

describe("signals", () => {
  test("of a lease that is over stop a write before it is sent", async ({ gateway }) => {
    const client = createGatewayClient({ url: gateway.url, fetch: () => expect.unreachable("nothing may be sent") });
    expect(await client.put("x", {}, { lease: { token: 1, signal: AbortSignal.abort() } })).toMatchObject({
      ok: false,
      code: "lease_lost",
      outcome: "not_applied",
      attempts: 0,
    });
    expect(await client.seal("x", { lease: { token: 1, signal: AbortSignal.abort() } })).toMatchObject({ code: "lease_lost" });
  });

  test("of a lease that ends between two tries end the retries, and the outcome stays unknown", async ({ proxied: { proxy, client } }) => {
    const lease = new AbortController();
    proxy.dropReplies();
    const endless = { ...hurried.retry, attempts: Number.MAX_SAFE_INTEGER };
    const written = client({ fetch: unstoppable, retry: endless }).put(
      uniqueName(),
      {},
      { lease: { token: 1, signal: lease.signal }, seq: 1 },
    );
    await proxy.until(({ replies }) => replies.droppedBytes > 0, patient.timeoutMs);
    lease.abort();
    expect(await written).toMatchObject({ ok: false, outcome: "unknown" });
  });

  test("of the caller end the call", async ({ proxied: { proxy, client } }) => {
    const caller = new AbortController();
    proxy.dropReplies();
    const read = client(patient).get("x", { signal: caller.signal });
    await proxy.until(({ replies }) => replies.droppedBytes > 0, patient.timeoutMs);
    caller.abort();
    expect(await read).toMatchObject({ ok: false, code: "aborted", attempts: 1 });
  });
});

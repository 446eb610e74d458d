// Mistakes of a caller: each is answered with what is wrong and what to write, before anything is
// sent.
import { describe, expect, expectTypeOf, test } from "vitest";
import {
  type ConditionalGetResult,
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
  type GetOptions,
  type GetResult,
  rawJson,
  withResource,
} from "../../src/index.js";

const sent: unknown[] = [];
const fetching: typeof fetch = async (url, { headers, body } = {}) => {
  sent.push(body);
  const token = new Headers(headers).get("fencing-token") ?? "";
  const resource = decodeURIComponent(String(url).replace("http://127.0.0.1:1/v1/resources/", ""));
  return Response.json({ resource, token: Number(token), rev: 1 }, { headers: { etag: '"1"', "fencing-token": token } });
};
const client = createGatewayClient({ url: "http://127.0.0.1:1", fetch: fetching });
const make = (options: unknown) => () => createGatewayClient(options as GatewayClientOptions);

describe("createGatewayClient refuses", () => {
  test.each<readonly [string, unknown, string]>([
    ["no options", undefined, "createGatewayClient needs an object of options, not undefined"],
    ["no url", { apiKey: "k" }, 'createGatewayClient needs { url: "http://127.0.0.1:8080" }; url is undefined'],
    [
      "a url without a scheme",
      { url: "localhost:8080" },
      'url must begin with http:// or https://, for example http://127.0.0.1:8080; it is "localhost:8080"',
    ],
    ["a url that is none", { url: "gateway" }, 'it is "gateway"'],
    [
      "a url with the prefix of its paths",
      { url: "http://g/api/v1/" },
      'must not end in /v1, which every path begins with; write "http://g/api"',
    ],
    ["a node of the lock", { url: "http://redis-a:6379" }, "port 6379 is that of Redis, the lock's node"],
    ["a password in the url", { url: "http://me:secret@gateway" }, "The credential is the option apiKey"],
    ["an option in other letters", { url: "http://g", apikey: "k" }, 'createGatewayClient has no option "apikey"; it has url, apiKey, '],
    ["an unknown option", { url: "http://g", headers: {} }, 'no option "headers"; it has url, apiKey, fetch, timeoutMs, retry'],
    ["an unknown option of retry", { url: "http://g", retry: { tries: 3 } }, 'retry has no option "tries"; it has attempts,'],
    ["a key with a line end", { url: "http://g", apiKey: "abc\n" }, "it is a text of 4 characters with one that a header cannot carry"],
    ["a time-out of nothing", { url: "http://g", timeoutMs: 0 }, "timeoutMs must be milliseconds from 1 to 2147483647, not number 0"],
  ])("%s", (_, options, message) => {
    expect(make(options)).toThrow(message);
  });
});

const signal = new AbortController().signal;
const lease = { token: 34, signal, resources: ["orders/41", "orders/43"] };
const locker = {
  acquire: (): Promise<never> => Promise.reject(new Error("a lease was asked for")),
};
const loose = client as unknown as Record<keyof GatewayClient, (...args: readonly unknown[]) => Promise<unknown>>;

describe("a call refuses", () => {
  test.each<readonly [string, () => Promise<unknown>, string]>([
    ["a forgotten lease", () => loose.put("orders/42", {}, {}), "the call needs { lease } or { token }"],
    ["a forgotten await", () => loose.put("orders/42", {}, { lease: Promise.resolve(lease) }), "is a Promise: write await before acquire"],
    ["a forgotten await in a transaction", () => loose.transaction([], { lease: Promise.resolve(lease) }), "is a Promise: write await"],
    ["a locker that is not there yet", () => withResource(Promise.resolve(locker) as never, client, "r", () => 1), "is an await missing?"],
    ["forgotten options", () => loose.put("orders/42", {}), "put needs an object of options, not undefined"],
    ["a token as text", () => loose.put("orders/42", {}, { token: "34" }), 'a fencing token is a number, as in lease.token, not "34"'],
    ["a misspelt option", () => loose.patch("orders/42", {}, { token: 1, ifmatch: 3 }), 'patch has no option "ifmatch"; it has '],
    ["a lease of others", () => client.put("orders/42", {}, { lease }), 'the lease is of "orders/41", "orders/43", not of "orders/42"'],
    ["a lease of others in a seal", () => client.seal("orders/42", { lease }), "pass { token: lease.token }"],
    [
      "a lease of others in a transaction",
      () => client.transaction([{ op: "seal", resource: "orders/42" }], { lease }),
      'not of "orders/42"',
    ],
    [
      "no locker",
      () => withResource(client as never, client, "orders/42", () => 1),
      "withResource needs a locker first, as createLocker({ nodes }) makes it, not an object",
    ],
    [
      "no client",
      () => withResource(locker, undefined as never, "orders/42", () => 1),
      "withResource needs a client second, as createGatewayClient({ url }) makes it, not undefined",
    ],
    [
      "no routine, before it takes a lease",
      () => withResource(locker, client, "orders/42", { balance: 1 } as never),
      "withResource needs a routine that returns the new document, not an object",
    ],
    ["a name that is no text", () => loose.get(42), 'a resource name is text such as "orders/42", not number 42'],
  ])("%s", async (_, call, message) => {
    sent.length = 0;
    await expect(call()).rejects.toThrow(message);
    expect(sent).toEqual([]);
  });

  test.each<readonly [string, unknown, string]>([
    ["nothing", undefined, "the document is undefined: write null, or call delete"],
    ["NaN", { price: Number.NaN }, "the document.price is NaN: JSON has no such number"],
    ["infinity", { items: [{ price: Number.POSITIVE_INFINITY }] }, "the document.items[0].price is Infinity"],
    ["a hole in a list", { items: [1, undefined] }, "the document.items[1] is undefined: JSON would store null"],
    ["a date", { at: new Date(0) }, "the document.at is a Date, which would be read back as text"],
    ["a bigint", { total: 12n }, "the document.total is the bigint 12: write it as text, or use rawJson"],
    ["a function", { run: () => 1 }, "the document.run is a function: JSON cannot hold it"],
    ["a map", new Map([["a", 1]]), "the document is a Map: JSON would store {}"],
  ])("%s in a document", async (_, value, message) => {
    await expect(client.put("orders/42", value, { token: 1 })).rejects.toThrow(message);
  });

  test.each<readonly [string, string, unknown, { readonly token: number; readonly seq?: number }]>([
    ...["", "..", "a/./b", "/a", "a//b"].map((name) => [`the name ${JSON.stringify(name)}`, name, {}, { token: 1 }] as const),
    ...[0, -1, 1.5, Number.NaN, 1e15].map((token) => [`the token ${token}`, "a", {}, { token }] as const),
    ["the number 0", "a", {}, { token: 1, seq: 0 }],
  ])("%s", async (_, name, value, options) => {
    await expect(client.put(name, value, options)).rejects.toThrow(RangeError);
  });

  test("a text that is no JSON", () => {
    expect(() => rawJson("{oops")).toThrow(SyntaxError);
  });

  test("a document that contains itself", async () => {
    const value: Record<string, unknown> = {};
    value.self = value;
    await expect(client.put("orders/42", value, { token: 1 })).rejects.toThrow("circular");
  });
});

test("what JSON keeps is sent: members that are undefined are left out, raw JSON and toJSON as they are", async () => {
  sent.length = 0;
  const price = { toJSON: () => "1.10" };
  for (const value of [{ note: undefined, price }, rawJson("12345678901234567890"), null, "text"])
    expect(await client.put("orders/42", value, { token: 1 })).toMatchObject({ ok: true });
  expect(sent).toEqual(['{"price":"1.10"}', "12345678901234567890", "null", '"text"']);
});

test("a lease of several resources, and the bare token of another lease, are accepted", async () => {
  expect(await client.put("orders/41", {}, { lease })).toMatchObject({ ok: true });
  expect(await client.put("orders/42", {}, { token: lease.token })).toMatchObject({ ok: true });
});

test("what was read may be unmodified only where ifNoneMatch asked", () => {
  interface Order {
    readonly status: string;
  }
  // Only the compiler runs these.
  const plain = () => client.get<Order>("orders/1", { timeoutMs: 100 });
  const conditional = () => client.get<Order>("orders/1", { ifNoneMatch: 3 });
  const either = (options: GetOptions) => client.get<Order>("orders/1", options);
  expectTypeOf(plain).returns.resolves.toEqualTypeOf<GetResult<Order>>();
  expectTypeOf(conditional).returns.resolves.toEqualTypeOf<ConditionalGetResult<Order>>();
  expectTypeOf(either).returns.resolves.toEqualTypeOf<ConditionalGetResult<Order>>();
  expectTypeOf<Extract<GetResult<Order>, { ok: true }>["value"]>().toEqualTypeOf<Order>();
});

// Every fault of a request has its own code, is never a 500, and stores nothing.
import fc from "fast-check";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { get, put, send } from "../support/wire.js";

const json = ["Content-Type", "application/json"];
const token = ["Fencing-Token", "5"];
const good = [...json, ...token];

interface BadRequest {
  readonly method?: string;
  /** After /v1/resources/bad/. */
  readonly name?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
}
const withHeaders = (...headers: string[]): BadRequest => ({ headers });
const withBody = (body: string | Buffer): BadRequest => ({ body });
const withType = (type: string): BadRequest => withHeaders("Content-Type", type, ...token);
const withName = (name: string): BadRequest => ({ name });

/** By the answer: what is answered so. */
const faults: Readonly<Record<string, readonly BadRequest[]>> = {
  "428 fencing_token_required": [withHeaders(...json)],
  "400 fencing_token_malformed": [
    ...["0", "", "5;seq=0"].map((value) => withHeaders(...json, "Fencing-Token", value)),
    withHeaders(...json, "fencing-token", "5", "FENCING-TOKEN", "5"),
  ],
  "400 resource_name_invalid": [
    ...[".", "..", "a/../b", "a/./b", "a/..", "../a", "a%2F..%2Fb", "a/%2E%2E/b", "/a", "a/", "a//b", "a%2F%2Fb"].map(withName),
    ...["a%", "a%2", "a%zz", "%C0%AF", "%ED%A0%80", "%FF", "e%CC%81", "a%00b", "a%0Ab", "a%7Fb", "a%C2%85b"].map(withName),
    ...["a?b", "a#b", 'a"b', "a\\b", "a|b", "x".repeat(10_000)].map(withName),
    { path: "/v1/resources/" },
  ],
  "400 request_malformed": [withName("\u00e9")],
  "400 json_invalid": [
    ...["", "{oops", '{"a": [1, 2', '{"a":"\\u0000"}', '{"\\u0000":1}', '{"a":"\\ud800"}', "[".repeat(1_000_000)].map(withBody),
    ...["1e999999999", `${"[".repeat(101)}${"]".repeat(101)}`].map(withBody),
    withBody(Buffer.from([0x22, 0xff, 0x22])), // Bytes that are not UTF-8.
    withBody(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), // A surrogate as UTF-8.
    withBody(Buffer.from([0xef, 0xbb, 0xbf, 0x31])), // A byte order mark.
  ],
  "413 body_too_large": [
    withBody(`[${Array(30).fill("1e90000").join(",")}]`),
    withBody(JSON.stringify("x".repeat(1_048_576))),
    withBody(Buffer.alloc(5_000_000, 0x20)),
  ],
  "415 media_type_unsupported": [
    withHeaders(...token),
    ...["text/plain", "application/json-patch+json", "application/merge-patch+json", "application/jsonx", "", "*/*"].map(withType),
    ...["application/json; charset=utf-16", "application/json; charset=latin1"].map(withType),
    { method: "PATCH", headers: ["Content-Type", "application/json-patch+json", ...token], body: "[]" },
    withHeaders(...good, "Content-Type", "application/json"),
    ...["gzip", "identity, gzip"].map((encoding) => withHeaders(...good, "Content-Encoding", encoding)),
  ],
  "400 precondition_unsupported": [
    ...["If-Modified-Since", "If-Unmodified-Since", "If-Range"].map((name) => withHeaders(...good, name, "Sat, 29 Oct 1994 19:43:31 GMT")),
    ...['W/"1"', '"1", "2"', "junk", "12"].map((tag) => withHeaders(...good, "If-Match", tag)),
    ...["If-Match", "If-None-Match", "IF-RANGE"].map((name) => withHeaders(...good, "If-Match", '"1"', name, '"1"')),
    withHeaders(...good, "If-None-Match", '"1"'),
    withHeaders(...good, "Content-Range", "bytes 0-1/9"), // A part of a document.
    ...["12", '"12" "13"', "", '"12",'].map((tag) => ({ method: "GET", headers: ["If-None-Match", tag] })),
    ...["If-Match", "If-Modified-Since"].map((name) => ({ method: "GET", headers: [name, '"12"'] })),
    { method: "POST", name: "x/seal", headers: [...token, "If-Match", '"1"'], body: "" },
    // A key that would not be honoured: the number of a write makes it repeatable.
    withHeaders(...good, "Idempotency-Key", "a"),
    { method: "POST", path: "/v1/transactions", headers: [...good, "Idempotency-Key", "a"] },
  ],
  "405 method_not_allowed": [
    ...["PROPFIND", "PURGE", "TRACE", "LOCK", "POST"].map((method) => ({ method })),
    { path: "/v1/resources" },
    { method: "GET", path: "/v1/transactions" },
  ],
  "404 route_not_found": ["/v2/resources/x", "/V1/resources/x"].map((path) => ({ path })),
  "400 query_invalid": [
    ...["limit=0", "limit=1001", "limit=-1", "limit=1e2", "limit=", "limit=1&limit=2", "limit[]=1", "deep=1", "__proto__=1"],
    ...["prefix=%FF", "prefix=%", "include=all", "cursor=%20"],
  ]
    .map((query) => `resources?${query}`)
    .concat(["since=yesterday", "since=2026-02-30T00:00:00Z", "before=0", "after=1", "prefix=%ff"].map((query) => `refused?${query}`))
    .map((query) => ({ method: "GET", path: `/v1/${query}` })),
  "431 headers_too_many": [withHeaders(...good, ...Array.from({ length: 2_100 }, (_, index) => [`a${index % 9}`, "b"]).flat())],
};

test.for(Object.entries(faults))("%s is answered, and nothing is changed", async ([answer, requests], { gateway: { url } }) => {
  for (const request of requests) {
    const { method = "PUT", name = "r", path = `/v1/resources/bad/${name}`, headers = good, body = "{}" } = request;
    const sent = method === "GET" || method === "TRACE" ? { method, path, headers } : { method, path, headers, body };
    const { status, json: told } = await send(url, sent);
    expect([request, `${status} ${told.code}`, told.status]).toEqual([request, answer, status]);
  }
  expect(await send(url, { method: "GET", path: "/v1/resources?prefix=bad%2F" })).toMatchObject({ status: 200, json: { items: [] } });
});

test("a media type is taken by any spelling", async ({ gateway: { url } }) => {
  for (const type of ["Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"']) {
    const headers = ["Content-Type", type, ...token, "Content-Encoding", "identity"];
    expect(await send(url, { method: "PUT", path: `/v1/resources/${uniqueName()}`, headers, body: "{}" })).toMatchObject({ status: 201 });
  }
});

test("a method that is not allowed is told which are, and POST only on the seal of a resource", async ({ gateway: { url } }) => {
  const allow = "GET, HEAD, PUT, PATCH, DELETE";
  for (const method of ["PURGE", "BREW", "POST"])
    expect(await send(url, { method, path: "/v1/resources/x" })).toMatchObject({ status: 405, headers: { allow } });
  const { json: told } = await send(url, { method: "POST", path: "/v1/resources/x" });
  expect(told.detail).toContain("POST /v1/resources/{name}/seal");
  const seal = await send(url, { method: "PURGE", path: "/v1/resources/x/seal" });
  expect(seal).toMatchObject({ status: 405, headers: { allow: `${allow}, POST` } });
});

test("G2 whatever is in the place of a token, a document that is there stays as it is", async ({ gateway: { url } }) => {
  const name = uniqueName();
  await put(url, name, { token: 5, value: { n: 1 } });
  const path = `/v1/resources/${name}`;
  const operations = JSON.stringify({ operations: [{ op: "put", resource: name, value: {} }] });
  for (const presented of [
    [],
    ["Fencing-Token", ""],
    ["Fencing-Token", "6, 7"],
    ["Fencing-Token", "6", "Fencing-Token", "6"],
    ["Fencing-Token", "0x6"],
    ["Fencing-Token", "-6"],
    ["X-Fencing-Token", "6"],
  ]) {
    const headers = [...json, ...presented];
    const answers = await Promise.all([
      send(url, { method: "PUT", path, headers, body: "{}" }),
      send(url, { method: "PATCH", path, headers, body: '{"n":2}' }),
      send(url, { method: "DELETE", path, headers: presented }),
      send(url, { method: "POST", path: `${path}/seal`, headers: presented }),
      send(url, { method: "POST", path: "/v1/transactions", headers, body: operations }),
    ]);
    for (const { status } of answers) expect([presented, status]).toEqual([presented, expect.toBeOneOf([400, 428])]);
  }
  expect(await get(url, name)).toMatchObject({ json: { n: 1 }, headers: { etag: '"1"', "fencing-token": "5" } });
});

describe("documents", () => {
  const store = (url: string, name: string, body: string) =>
    send(url, { method: "PUT", path: `/v1/resources/${name}`, headers: good, body });

  test("may be any JSON that Postgres can keep, to the last digit and in any script", async ({ gateway: { url } }) => {
    const deep = `${"[".repeat(99)}1${"]".repeat(99)}`;
    const exact = ["9".repeat(100_000), "1.10", "null", '""', "[]", `0.${"1".repeat(16_000)}`, deep, '"€ 😀 \\\\"'];
    for (const text of [...exact, "1e99999", "-1e99999", "1e-16000", "-0"]) {
      const name = uniqueName();
      expect(await store(url, name, text)).toMatchObject({ status: 201 });
      const stored = await get(url, name);
      expect(stored.status).toBe(200);
      if (exact.includes(text)) expect(stored.text).toBe(text);
    }
  });

  test("of any shape come back as JSON.parse would see them", async ({ gateway: { url } }) => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ stringUnit: "grapheme", noUnicodeString: false } as fc.JsonSharedConstraints), async (value) => {
        const text = JSON.stringify(value);
        const name = uniqueName("shape");
        const answer = await store(url, name, text);
        if (/(?<!\\)(\\\\)*\\u0000/.test(text)) return expect(answer).toMatchObject({ status: 400 }); // Not where the backslash itself is escaped.
        expect(answer.status).toBe(201);
        expect((await get(url, name)).json).toEqual(JSON.parse(text));
      }),
      { numRuns: 60 },
    );
  });
});

test("any bytes in path, token and body are answered by something other than a 500", async ({ gateway: { url } }) => {
  const path = fc.stringMatching(/^[!-~]{0,40}$/);
  const value = fc.stringMatching(/^[ -~]{0,20}$/);
  await fc.assert(
    fc.asyncProperty(path, value, fc.string(), async (name, presented, body) => {
      const headers = [...json, "Fencing-Token", presented];
      const { status } = await send(url, { method: "PUT", path: `/v1/resources/fuzz/${name}`, headers, body });
      expect(status).toBeLessThan(500);
    }),
    { numRuns: 150 },
  );
  expect(await put(url, uniqueName(), { token: 1, value: {} })).toMatchObject({ status: 201 });
});

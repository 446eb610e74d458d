// Every fault of a request has its own code, is never a 500, and stores nothing.
import fc from "fast-check";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { get, put, send } from "../support/wire.js";

const json = ["Content-Type", "application/json"];
const token = ["Fencing-Token", "5"];

interface BadRequest {
  readonly what: string;
  readonly method?: string;
  /** After /v1/resources/bad/. */
  readonly name?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  readonly answer: readonly [status: number, code: string];
}

const malformedToken = [400, "fencing_token_malformed"] as const;
const badName = [400, "resource_name_invalid"] as const;
const badJson = [400, "json_invalid"] as const;
const badMedia = [415, "media_type_unsupported"] as const;
const badCondition = [400, "precondition_unsupported"] as const;

const tokens: readonly BadRequest[] = [
  { what: "no token", headers: json, answer: [428, "fencing_token_required"] },
  ...["-1", "0", "1000000000000000", "+5", "5 5", "0x5", "5.0", "", "five", "5,6", "5;seq=0", "5;seq", "05"].map(
    (value): BadRequest => ({
      what: `the token ${JSON.stringify(value)}`,
      headers: [...json, "Fencing-Token", value],
      answer: malformedToken,
    }),
  ),
  { what: "two tokens", headers: [...json, "Fencing-Token", "5", "Fencing-Token", "9"], answer: malformedToken },
  { what: "the same token twice", headers: [...json, "fencing-token", "5", "FENCING-TOKEN", "5"], answer: malformedToken },
];

const names: readonly BadRequest[] = [
  ...[
    "..",
    "a/../b",
    "%2e%2e",
    "a/%2E",
    "a%00",
    "a%0d%0ab",
    "e%CC%81",
    "%FF",
    "%",
    "a//b",
    "a/",
    "x".repeat(10_000),
    "a?b=1",
    "a#b",
    "a%5",
  ].map((name): BadRequest => ({ what: `the name ${name.slice(0, 20)}`, name, answer: badName })),
  { what: "a name that is not encoded at all", name: "\u00e9", answer: [400, "request_malformed"] },
  { what: "no name", path: "/v1/resources/", answer: badName },
];

const bodies: readonly BadRequest[] = [
  { what: "no body", body: "", answer: badJson },
  { what: "a body that is not JSON", body: "{oops", answer: badJson },
  { what: "a body cut short", body: '{"a": [1, 2', answer: badJson },
  { what: "NUL in a string", body: '{"a":"\\u0000"}', answer: badJson },
  { what: "NUL in a key", body: '{"\\u0000":1}', answer: badJson },
  { what: "half of a surrogate pair", body: '{"a":"\\ud800"}', answer: badJson },
  { what: "bytes that are not UTF-8", body: Buffer.from([0x22, 0xff, 0x22]), answer: badJson },
  { what: "a surrogate as UTF-8", body: Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), answer: badJson },
  { what: "a byte order mark", body: Buffer.from([0xef, 0xbb, 0xbf, 0x31]), answer: badJson },
  { what: "101 levels", body: `${"[".repeat(101)}${"]".repeat(101)}`, answer: badJson },
  { what: "a million brackets", body: "[".repeat(1_000_000), answer: badJson },
  { what: "a number the database cannot keep", body: "1e999999999", answer: badJson },
  { what: "numbers that unfold", body: `[${Array(30).fill("1e90000").join(",")}]`, answer: [413, "body_too_large"] },
  { what: "a body past the limit", body: JSON.stringify("x".repeat(1_048_576)), answer: [413, "body_too_large"] },
  { what: "a body far past the limit", body: Buffer.alloc(5_000_000, 0x20), answer: [413, "body_too_large"] },
  { what: "text", headers: ["Content-Type", "text/plain", ...token], answer: badMedia },
  { what: "a form", headers: ["Content-Type", "application/x-www-form-urlencoded", ...token], answer: badMedia },
  { what: "no media type", headers: token, answer: badMedia },
  { what: "another charset", headers: ["Content-Type", "application/json; charset=utf-16", ...token], answer: badMedia },
  { what: "a compressed body", headers: [...json, ...token, "Content-Encoding", "gzip"], answer: badMedia },
  {
    what: "a JSON patch",
    headers: ["Content-Type", "application/json-patch+json", ...token],
    body: "[]",
    answer: badMedia,
  },
  {
    what: "a JSON patch in another charset",
    method: "PATCH",
    headers: ["Content-Type", "application/json-patch+json; charset=utf-16", ...token],
    body: "[]",
    answer: badMedia,
  },
];

const conditions: readonly BadRequest[] = [
  ...["If-Modified-Since", "If-Unmodified-Since", "If-Range"].map(
    (name): BadRequest => ({ what: name, headers: [...json, ...token, name, "Sat, 29 Oct 1994 19:43:31 GMT"], answer: badCondition }),
  ),
  ...['W/"1"', '"1", "2"', "1", "junk"].map(
    (tag): BadRequest => ({ what: `If-Match ${tag}`, headers: [...json, ...token, "If-Match", tag], answer: badCondition }),
  ),
  { what: "If-None-Match with a tag", headers: [...json, ...token, "If-None-Match", '"1"'], answer: badCondition },
  { what: "If-Match twice", headers: [...json, ...token, "If-Match", '"1"', "If-Match", '"1"'], answer: badCondition },
  {
    what: "a seal with a condition",
    method: "POST",
    name: "x/seal",
    headers: [...token, "If-Match", '"1"'],
    body: "",
    answer: badCondition,
  },
  {
    what: "an idempotency key, which would not be honoured",
    headers: [...json, ...token, "Idempotency-Key", "a"],
    answer: [400, "precondition_unsupported"],
  },
  {
    what: "a transaction with an idempotency key",
    method: "POST",
    path: "/v1/transactions",
    headers: [...json, ...token, "Idempotency-Key", "a"],
    answer: [400, "precondition_unsupported"],
  },
];

const routes: readonly BadRequest[] = [
  ...["PROPFIND", "PURGE", "TRACE", "LOCK"].map(
    (method): BadRequest => ({ what: `the method ${method}`, method, answer: [405, "method_not_allowed"] }),
  ),
  { what: "POST on a resource", method: "POST", answer: [405, "method_not_allowed"] },
  { what: "PUT on the list", method: "PUT", path: "/v1/resources", answer: [405, "method_not_allowed"] },
  { what: "GET on transactions", method: "GET", path: "/v1/transactions", answer: [405, "method_not_allowed"] },
  { what: "a route that is not there", path: "/v2/resources/x", answer: [404, "route_not_found"] },
  { what: "a route in capitals", path: "/V1/resources/x", answer: [404, "route_not_found"] },
  { what: "a query nobody asked for", method: "GET", path: "/v1/resources?deep=1", answer: [400, "query_invalid"] },
  { what: "a prefix that does not decode", method: "GET", path: "/v1/resources?prefix=%FF", answer: [400, "query_invalid"] },
  {
    what: "2 100 header lines",
    headers: [...json, ...token, ...Array.from({ length: 2_100 }, (_, index) => [`a${index % 9}`, "b"]).flat()],
    answer: [431, "headers_too_many"],
  },
];

describe.for([
  ["tokens", tokens],
  ["names", names],
  ["bodies", bodies],
  ["conditions", conditions],
  ["routes", routes],
] as const)("%s", ([, table]) => {
  test.for(table)(
    "$what is refused and changes nothing",
    async ({ method = "PUT", name = "r", path = `/v1/resources/bad/${name}`, headers = [...json, ...token], body = "{}", answer }, {
      gateway: { url },
    }) => {
      const [status, code] = answer;
      const withBody = method === "GET" || method === "TRACE" ? undefined : body;
      expect(await send(url, { method, path, headers, body: withBody })).toMatchObject({ status, json: { status, code } });
      expect(await send(url, { method: "GET", path: "/v1/resources?prefix=bad%2F" })).toMatchObject({ status: 200, json: { items: [] } });
    },
  );
});

describe("what is allowed is told", () => {
  test("with the methods of the route, to a wrong method and to OPTIONS", async ({ gateway: { url } }) => {
    const allow = "GET, HEAD, PUT, PATCH, DELETE";
    expect(await send(url, { method: "PURGE", path: "/v1/resources/x" })).toMatchObject({ headers: { allow } });
    expect(await send(url, { method: "BREW", path: "/v1/resources/x" })).toMatchObject({ status: 405, headers: { allow } });
  });

  test("and POST only where it works: on the seal of a resource", async ({ gateway: { url } }) => {
    const post = await send(url, { method: "POST", path: "/v1/resources/x" });
    expect(post).toMatchObject({ status: 405, headers: { allow: "GET, HEAD, PUT, PATCH, DELETE" } });
    expect(post.json.detail).toContain("POST /v1/resources/{name}/seal");
    const everything = "GET, HEAD, PUT, PATCH, DELETE, POST";
    expect(await send(url, { method: "PURGE", path: "/v1/resources/x/seal" })).toMatchObject({
      status: 405,
      headers: { allow: everything },
    });
  });
});

describe("documents", () => {
  test("keep every digit of every number, and their text in any script", async ({ gateway: { url } }) => {
    const name = uniqueName();
    const text = `{"big": 12345678901234567890, "long": 0.1234567890123456789012345678901, "exponent": 1e400, "text": "€ 😀 \\ud83d\\ude00", "deep": ${"[".repeat(99)}1${"]".repeat(99)}}`;
    await send(url, { method: "PUT", path: `/v1/resources/${name}`, headers: [...json, ...token], body: text });
    const stored = await get(url, name);
    expect(stored.text).toContain("12345678901234567890");
    expect(stored.text).toContain("0.1234567890123456789012345678901");
    expect(stored.text).toContain(`1${"0".repeat(400)}`);
    expect(stored.json.text).toBe("€ 😀 😀");
    expect(stored.text).toContain(`${"[".repeat(99)}1`);
  });

  test.for(["1e99999", "-1e99999", "1e-16000", `0.${"1".repeat(16_000)}`, "9".repeat(100_000), "-0", "1.10", "null", '""', "[]"])(
    "may be %s",
    async (text, { gateway: { url } }) => {
      const name = uniqueName();
      expect(await send(url, { method: "PUT", path: `/v1/resources/${name}`, headers: [...json, ...token], body: text })).toMatchObject({
        status: 201,
      });
      const stored = await get(url, name);
      expect(stored.status).toBe(200);
      if (/^[0-9."[\]nul]+$/.test(text)) expect(stored.text).toBe(text);
    },
  );

  test("of any shape come back as JSON.parse would see them", async ({ gateway: { url } }) => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ stringUnit: "grapheme", noUnicodeString: false } as fc.JsonSharedConstraints), async (value) => {
        const text = JSON.stringify(value);
        const name = uniqueName("shape");
        const answer = await send(url, { method: "PUT", path: `/v1/resources/${name}`, headers: [...json, ...token], body: text });
        if (/(?<!\\)(\\\\)*\\u0000/.test(text)) return expect(answer).toMatchObject({ status: 400 }); // Not where the backslash itself is escaped.
        expect(answer.status).toBe(201);
        expect((await get(url, name)).json).toEqual(JSON.parse(text));
      }),
      { numRuns: 60 },
    );
  });
});

describe("any bytes in path, token and body", () => {
  test("are answered by something other than a 500", async ({ gateway: { url } }) => {
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
  });

  test("leave the gateway working as before", async ({ gateway: { url } }) => {
    expect(await put(url, uniqueName(), { token: 1, value: {} })).toMatchObject({ status: 201 });
  });
});

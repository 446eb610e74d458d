// JSON Patch through a gateway: what is stored, what is refused, and what other writes make of it.
import { createGatewayClient, rawJson } from "@palisade/client";
import { makeApiKey } from "@palisade/gateway";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { get, put, remove, send } from "../support/wire.js";

interface Patch {
  readonly token?: number | string;
  readonly headers?: readonly string[];
}

const patch = (url: string, name: string, operations: unknown, { token = 5, headers = [] }: Patch = {}) =>
  send(url, {
    method: "PATCH",
    path: `/v1/resources/${name}`,
    headers: ["Content-Type", "application/json-patch+json", "Fencing-Token", String(token), ...headers],
    body: typeof operations === "string" ? operations : JSON.stringify(operations),
  });
const replaceN = (value: number) => [{ op: "replace", path: "/n", value }];

describe("a JSON patch", () => {
  test("G3 changes what it names, keeps every digit of the rest, and is answered as a PUT", async ({ gateway: { url } }) => {
    const name = uniqueName();
    const client = createGatewayClient({ url });
    await client.put(name, rawJson('{"n":1,"big":12345678901234567890,"exact":1.50}'), { token: 5 });
    expect(
      await patch(url, name, [
        { op: "add", path: "/lines", value: [] },
        { op: "add", path: "/lines/-", value: "é" },
      ]),
    ).toMatchObject({
      status: 200,
      headers: { etag: '"2"', "fencing-token": "5" },
      json: { resource: name, token: 5, rev: 2 },
    });
    expect(await client.jsonPatch(name, [{ op: "replace", path: "/n", value: rawJson("98765432109876543210") }], { token: 6 })).toEqual({
      ok: true,
      resource: name,
      token: 6,
      rev: 3,
      replayed: false,
    });
    expect(JSON.parse((await get(url, name)).text.replaceAll(/\d{20}|1\.50/g, '"$&"'))).toEqual({
      n: "98765432109876543210",
      big: "12345678901234567890",
      exact: "1.50",
      lines: ["é"],
    });
    const { json } = await send(url, { method: "GET", path: `/v1/history/${name}` });
    expect(json.entries.map(({ rev, op }: { rev: number; op: string }) => [rev, op])).toEqual([
      [3, "put"],
      [2, "put"],
      [1, "put"],
    ]);
  });

  test("that does not fit is refused whole, and says which operation", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 5, value: { n: 1 } });
    const misfit = [...replaceN(2), { op: "test", path: "/n", value: 1 }];
    expect(await patch(url, name, misfit)).toMatchObject({ status: 409, json: { code: "patch_failed", operation: 1 } });
    expect(await patch(url, name, [{ op: "remove" }])).toMatchObject({ status: 400, json: { code: "json_invalid", operation: 0 } });
    expect(await get(url, name)).toMatchObject({ text: '{"n": 1}', headers: { etag: '"1"' } });
    expect(await patch(url, name, [{ op: "remove", path: "/x" }], { token: 9 })).toMatchObject({ status: 409 });
    expect(await patch(url, name, replaceN(3))).toMatchObject({ status: 200 });
  });

  test("G1 of an older holder is stale, also where it does not fit and where there is nothing", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 7, value: { n: 1 } });
    const stale = { status: 412, json: { code: "fencing_token_stale", currentToken: 7 } };
    expect(await patch(url, name, replaceN(2))).toMatchObject(stale);
    expect(await patch(url, name, [{ op: "test", path: "/n", value: 2 }])).toMatchObject(stale);
    await remove(url, name, { token: 7 });
    expect(await patch(url, name, replaceN(2))).toMatchObject(stale);
  });

  test("of nothing is 404 and raises no fence; a condition that is not met comes first", async ({ gateway: { url } }) => {
    const name = uniqueName();
    expect(await patch(url, name, replaceN(2))).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect(await patch(url, name, replaceN(2), { headers: ["If-Match", "*"] })).toMatchObject({ status: 412 });
    expect(await put(url, name, { token: 1, value: { n: 1 } })).toMatchObject({ status: 201 });
    expect(await patch(url, name, replaceN(2), { headers: ["If-Match", '"9"'] })).toMatchObject({
      status: 412,
      json: { code: "etag_mismatch", currentETag: '"1"' },
    });
    expect(await patch(url, name, replaceN(2), { headers: ["If-None-Match", "*"] })).toMatchObject({ status: 412 });
    expect(await patch(url, name, replaceN(2), { headers: ["If-Match", '"1"'] })).toMatchObject({ status: 200 });
  });

  test("G3 is applied anew when another write comes between, so that none is lost", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 5, value: { done: [] } });
    const writers = [0, 1, 2, 3, 4, 5, 6, 7];
    const answers = await Promise.all(writers.map((value) => patch(url, name, [{ op: "add", path: "/done/-", value }])));
    expect(answers.map(({ status }) => status)).toEqual(writers.map(() => 200));
    const { json, headers } = await get(url, name);
    expect([...json.done].sort()).toEqual(writers);
    expect(headers.etag).toBe('"9"');
  });

  test("G3 that was stored is known by its key, and by its seq, when it would not fit again", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 5, value: { n: 1 } });
    const once = [{ op: "test", path: "/n", value: 1 }, ...replaceN(2)];
    const keyed = { headers: ["Idempotency-Key", uniqueName("key")] };
    expect(await patch(url, name, once, keyed)).toMatchObject({ status: 200, json: { rev: 2 } });
    expect(await patch(url, name, once, keyed)).toMatchObject({
      status: 200,
      json: { rev: 2 },
      headers: { "idempotent-replayed": "true", etag: '"2"' },
    });
    expect(await patch(url, name, replaceN(3), keyed)).toMatchObject({ status: 422, json: { code: "idempotency_key_reused" } });
    const twice = [{ op: "test", path: "/n", value: 2 }, ...replaceN(3)];
    expect(await patch(url, name, twice, { token: "5;seq=4" })).toMatchObject({ status: 200, json: { rev: 3 } });
    expect(await patch(url, name, twice, { token: "5;seq=4" })).toMatchObject({
      status: 409,
      json: { code: "sequence_out_of_order", currentSeq: 4, currentETag: '"3"' },
    });
  });

  test("G6 of a document above the limit is refused before it is read", async ({ startGateway }) => {
    const { url } = await startGateway({ bodyLimitBytes: 10_000, bodyBudgetBytes: 100_000 });
    const name = uniqueName();
    const client = createGatewayClient({ url });
    await client.put(name, { a: "x".repeat(6_000) }, { token: 5 });
    expect(await client.jsonPatch(name, [{ op: "copy", from: "/a", path: "/b" }], { token: 5 })).toMatchObject({
      code: "document_too_large",
      status: 413,
    });
    for (const key of ["b", "c", "d"]) await client.patch(name, { [key]: "x".repeat(6_000) }, { token: 5 });
    expect(await client.jsonPatch(name, [{ op: "remove", path: "/b" }], { token: 5 })).toMatchObject({ code: "document_too_large" });
  });

  test("takes a credential that may read, because a test tells what a document says", async ({ startGateway }) => {
    const keys = { writer: makeApiKey(), both: makeApiKey() };
    const apiKeys = [
      { id: "writer", sha256: keys.writer.sha256, scopes: ["write:"] },
      { id: "both", sha256: keys.both.sha256, scopes: ["write:", "read:"] },
    ];
    const { url } = await startGateway({ apiKeys });
    const name = uniqueName();
    const as = (who: keyof typeof keys) => ({ headers: ["Authorization", `Bearer ${keys[who].key}`] });
    await put(url, name, { token: 5, value: { n: 1 }, ...as("both") });
    const guess = [{ op: "test", path: "/n", value: 1 }];
    expect(await patch(url, name, guess, as("writer"))).toMatchObject({ status: 403, json: { code: "forbidden_scope" } });
    expect(await patch(url, name, guess, as("both"))).toMatchObject({ status: 200 });
  });
});

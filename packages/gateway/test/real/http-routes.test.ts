// Every route in ordinary use: statuses, headers and bodies of the contract. The sender also checks
// each answer against the OpenAPI document.
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { get, put, remove, seal, send } from "../support/wire.js";

const json = ["Content-Type", "application/json"];

describe("PUT", () => {
  test("reaches the same resource however its name is encoded", async ({ gateway: { url } }) => {
    const name = uniqueName("straße");
    await put(url, encodeURIComponent(name), { token: 5, value: { n: 1 } });
    expect(await get(url, name.split("/").map(encodeURIComponent).join("/"))).toMatchObject({ status: 200, json: { n: 1 } });
    expect(await get(url, encodeURIComponent(name).replaceAll("r", "%72"))).toMatchObject({ status: 200 });
  });

  test("with If-Match stores only over that revision, with * only over a document", async ({ gateway: { url } }) => {
    const name = uniqueName();
    const write = (...condition: string[]) => put(url, name, { token: 5, value: {}, headers: condition });
    expect(await write("If-Match", "*")).toMatchObject({ status: 412, json: { code: "etag_mismatch" } });
    expect(await write("If-None-Match", "*")).toMatchObject({ status: 201 });
    expect(await write("If-None-Match", "*")).toMatchObject({
      status: 412,
      json: { code: "etag_mismatch", currentETag: '"1"' },
      headers: { etag: '"1"' },
    });
    expect(await write("If-Match", '"2"')).toMatchObject({ status: 412 });
    expect(await write("If-Match", '"1"')).toMatchObject({ status: 200, headers: { etag: '"2"' } });
    expect(await write("If-Match", "*")).toMatchObject({ status: 200 });
  });
});

describe("PATCH", () => {
  const patch = (url: string, name: string, change: unknown) =>
    send(url, {
      method: "PATCH",
      path: `/v1/resources/${name}`,
      headers: ["Content-Type", "application/merge-patch+json", "Fencing-Token", "5"],
      body: JSON.stringify(change),
    });

  test("of nothing is 404 and raises no fence", async ({ gateway: { url } }) => {
    const name = uniqueName();
    expect(await patch(url, name, {})).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect(await put(url, name, { token: 1, value: {} })).toMatchObject({ status: 201 });
  });
});

describe("DELETE", () => {
  test("answers 204 with the fence that stays, and 404 when there is nothing", async ({ gateway: { url } }) => {
    const name = uniqueName();
    expect(await remove(url, name, { token: 5 })).toMatchObject({ status: 404 });
    await put(url, name, { token: 5, value: {} });
    expect(await remove(url, name, { token: 6, headers: ["If-Match", '"9"'] })).toMatchObject({ status: 412 });
    expect(await remove(url, name, { token: 6 })).toMatchObject({ status: 204, text: "", headers: { "fencing-token": "6", etag: '"2"' } });
    expect(await remove(url, name, { token: 6 })).toMatchObject({ status: 404 });
  });
});

describe("GET", () => {
  test("returns the document as it is, with ETag and fence", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 5, value: { n: 1 } });
    expect(await get(url, name)).toMatchObject({
      status: 200,
      text: '{"n": 1}',
      headers: { etag: '"1"', "fencing-token": "5", "content-type": "application/json", "cache-control": "private, no-cache" },
    });
    expect(await send(url, { method: "HEAD", path: `/v1/resources/${name}` })).toMatchObject({
      status: 200,
      text: "",
      headers: { etag: '"1"', "content-length": "8" },
    });
  });

  test("answers 304 to a caller that already has it", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 5, value: { n: 1 } });
    expect(await get(url, name, "If-None-Match", 'W/"1", "7"')).toMatchObject({
      status: 304,
      text: "",
      headers: { etag: '"1"', "fencing-token": "5" },
    });
    expect(await get(url, name, "If-None-Match", '"2"')).toMatchObject({ status: 200 });
  });

  test("answers 404 with the fence, where there is one", async ({ gateway: { url } }) => {
    const name = uniqueName();
    const unknown = await get(url, name);
    expect(unknown).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect(unknown.headers["fencing-token"]).toBeUndefined();
    await seal(url, name, 5);
    expect(await get(url, name)).toMatchObject({ status: 404, headers: { "fencing-token": "5" }, json: { currentToken: 5 } });
  });

  test("keeps the request id of the caller, or makes one", async ({ gateway: { url } }) => {
    expect((await get(url, "x", "X-Request-Id", "abc-123")).headers["x-request-id"]).toBe("abc-123");
    for (const odd of ["a b", "x".repeat(200), '"'])
      expect((await get(url, "x", "X-Request-Id", odd)).headers["x-request-id"]).toMatch(/^[a-z0-9]+-[a-z0-9]+$/);
  });
});

describe("seal", () => {
  test("returns the document with every digit, and null where there is none", async ({ gateway: { url } }) => {
    const name = uniqueName();
    expect(await seal(url, name, 4)).toMatchObject({ status: 200, json: { value: null, rev: 0 } });
    await send(url, {
      method: "PUT",
      path: `/v1/resources/${name}`,
      headers: [...json, "Fencing-Token", "4"],
      body: "12345678901234567890",
    });
    expect((await seal(url, name, 5)).text).toContain('"value":12345678901234567890}');
    expect(await seal(url, name, 5)).toMatchObject({ status: 200 });
  });

  test("is the last segment of a POST, also where the name of the resource ends in it", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, `${name}/seal`, { token: 5, value: { n: 1 } });
    expect(await seal(url, `${name}/seal`, 6)).toMatchObject({ json: { resource: `${name}/seal`, value: { n: 1 } } });
    expect(await put(url, name, { token: 1, value: {} })).toMatchObject({ status: 201 });
  });
});

describe("the list", () => {
  test("goes through all names under a prefix in pages, documents included when asked", async ({ gateway: { url } }) => {
    const prefix = `${uniqueName("list")}/`;
    for (let n = 0; n < 7; n++) await put(url, `${prefix}${n}`, { token: 5, value: { n } });
    await remove(url, `${prefix}3`, { token: 6 });
    const seen: { resource: string; value?: unknown }[] = [];
    let cursor = "";
    do {
      const path: string = `/v1/resources?prefix=${encodeURIComponent(prefix)}&limit=3&include=documents&tombstones=include${cursor}`;
      const { json: page } = await send(url, { method: "GET", path });
      seen.push(...page.items);
      cursor = page.nextCursor === null ? "" : `&cursor=${page.nextCursor}`;
    } while (cursor !== "");
    expect(seen.map(({ resource, value }) => [resource, value])).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((n) => [`${prefix}${n}`, n === 3 ? undefined : { n }]),
    );
    const { json: fences } = await send(url, { method: "GET", path: `/v1/resources?prefix=${encodeURIComponent(prefix)}&limit=1` });
    expect(fences.items[0]).toMatchObject({ token: 5, rev: 1, seq: 0, holder: "anonymous" });
    expect(fences.items[0]).not.toHaveProperty("value");
  });

  test("with a cursor that no page gave is empty, not an error of the gateway", async ({ gateway: { url } }) => {
    for (const cursor of ["AAAA", "_____w", "x"])
      expect((await send(url, { method: "GET", path: `/v1/resources?cursor=${cursor}` })).status).toBe(200);
  });
});

describe("history", () => {
  test("tells every accepted write, newest first, in pages", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 5, value: {} });
    await put(url, name, { token: "6;seq=2", value: {} });
    await put(url, name, { token: 5, value: {} }); // Refused.
    await seal(url, name, 7);
    await remove(url, name, { token: 7 });
    const { json: page } = await send(url, { method: "GET", path: `/v1/history/${name}?limit=2` });
    expect(page).toMatchObject({
      resource: name,
      entries: [
        { rev: 3, op: "delete", token: 7 },
        { rev: 2, op: "put", token: 6, seq: 2, holder: "anonymous" },
      ],
      nextBefore: 2,
    });
    const { json: rest } = await send(url, { method: "GET", path: `/v1/history/${name}?limit=2&before=2` });
    expect(rest).toMatchObject({ entries: [{ rev: 1, token: 5 }], nextBefore: null });
  });

  test("is 404 where none is kept", async ({ startGateway }) => {
    const { url } = await startGateway({ history: "off" });
    expect(await send(url, { method: "GET", path: "/v1/history/x" })).toMatchObject({ status: 404, json: { code: "not_found" } });
  });
});

describe("fences", () => {
  const move = (url: string, name: string, change: unknown) =>
    send(url, { method: "POST", path: `/v1/fences/${name}`, headers: json, body: JSON.stringify(change) });

  test("name the holder of a resource, also where there is no document", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await seal(url, name, 5);
    expect(await send(url, { method: "GET", path: `/v1/fences/${name}` })).toMatchObject({
      status: 200,
      json: { resource: name, token: 5, rev: 0, holder: "anonymous" },
    });
    expect(await send(url, { method: "GET", path: `/v1/fences/${uniqueName()}` })).toMatchObject({ status: 404 });
  });

  test("can be raised and lowered by hand with a reason, and not by accident", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 5, value: {} });
    expect(await move(url, uniqueName(), { action: "raise", token: 9, reason: "x" })).toMatchObject({
      json: { previousToken: null, token: 9 },
    });
    expect(await move(url, uniqueName(), { action: "lower", token: 9, reason: "x" })).toMatchObject({
      status: 409,
      json: { code: "fence_unchanged" },
    });
    expect(await move(url, name, { action: "raise", token: 9, reason: "worker 5 is a zombie" })).toMatchObject({
      status: 200,
      json: { previousToken: 5, token: 9 },
      headers: { "fencing-token": "9" },
    });
    expect(await put(url, name, { token: 8, value: {} })).toMatchObject({ status: 412 });
    expect(await move(url, name, { action: "raise", token: 7, reason: "again" })).toMatchObject({
      status: 409,
      json: { code: "fence_unchanged", currentToken: 9 },
    });
    expect(await move(url, name, { action: "lower", token: 6, reason: "token 9 was a typing error" })).toMatchObject({
      status: 200,
      json: { previousToken: 9, token: 6 },
    });
    const moved = { by: "anonymous", reason: "token 9 was a typing error", previousToken: 9, token: 6, at: expect.stringMatching(/Z$/) };
    expect(await send(url, { method: "GET", path: `/v1/fences/${name}` })).toMatchObject({ status: 200, json: { token: 6, moved } });
    expect(await put(url, name, { token: "6;seq=1", value: {} })).toMatchObject({ status: 200 });
    for (const change of [
      {},
      { action: "raise", token: 9 },
      { action: "raise", token: 9, reason: " " },
      { action: "raise", token: 0, reason: "x" },
      { action: "reset", token: 9, reason: "x" },
      { action: "raise", token: 9, reason: "x", force: true },
    ]) {
      expect(await move(url, name, change)).toMatchObject({ status: 400, json: { code: "json_invalid" } });
    }
  });
});

test("the description of the API is served with it", async ({ gateway: { url } }) => {
  expect(await send(url, { method: "GET", path: "/openapi.json" })).toMatchObject({ status: 200, json: { openapi: "3.1.0" } });
});

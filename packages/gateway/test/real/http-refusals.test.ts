// The log of refused writes: what is in it, who may read it, and that a flood of refusals neither
// grows it nor delays an answer.
import { createGatewayClient } from "@palisade/client";
import { makeApiKey } from "@palisade/gateway";
import pg from "pg";
import { describe, eventually, expect, test, uniqueName } from "../support/fixtures.js";
import { put, send } from "../support/wire.js";

const read = (url: string, query: string, ...headers: string[]) => send(url, { method: "GET", path: `/v1/refused${query}`, headers });

describe("the log of refused writes", () => {
  test("says what was refused to whom and why, newest first, in pages and from a time on", async ({ startGateway }) => {
    const { url } = await startGateway({ refusedLog: "on" });
    const client = createGatewayClient({ url });
    const [prefix, startedAt] = [`${uniqueName()}/`, new Date()];
    await put(url, `${prefix}a`, { token: 35, value: {} });
    await put(url, `${prefix}a`, { token: 34, value: {} });
    await put(url, `${prefix}a`, { token: 35, value: {}, headers: ["If-Match", '"9"'] });
    await put(url, `${prefix}a`, { token: 0, value: {} }); // Misspelled: no write.
    const transaction = { operations: [{ op: "put", resource: `${prefix}a`, token: 3, value: 1 }] };
    const json = ["Content-Type", "application/json"];
    await send(url, { method: "POST", path: "/v1/transactions", headers: json, body: JSON.stringify(transaction) });
    const codes = async () => {
      const page = await client.refused({ prefix, since: startedAt });
      return page.ok ? page.entries.map(({ code, presentedToken, currentToken }) => [code, presentedToken, currentToken]) : page;
    };
    await eventually(codes).toEqual([
      ["fencing_token_stale", 3, 35],
      ["etag_mismatch", 35, null],
      ["fencing_token_stale", 34, 35],
    ]);
    const first = await client.refused({ prefix, limit: 2 });
    expect(first).toMatchObject({ ok: true, nextBefore: expect.any(Number), entries: [{ caller: expect.any(String), missed: 0 }, {}] });
    const rest = await client.refused({ prefix, limit: 2, before: first.ok ? (first.nextBefore ?? 0) : 0 });
    expect(rest).toMatchObject({ ok: true, nextBefore: null, entries: [{ code: "fencing_token_stale", presentedToken: 34 }] });
    expect(await client.refused({ prefix, since: new Date(Date.now() + 60_000) })).toMatchObject({ ok: true, entries: [] });
    expect(await client.refused({ prefix: `${prefix}b` })).toMatchObject({ ok: true, entries: [] });
  });

  test("is read only under a scope that covers the prefix, and is kept where it was asked for", async ({ startGateway, gateway }) => {
    const worker = makeApiKey();
    const { url } = await startGateway({ refusedLog: "on", apiKeys: [{ id: "w", sha256: worker.sha256, scopes: ["read:orders/"] }] });
    const as = ["Authorization", `Bearer ${worker.key}`];
    expect(await read(url, "?prefix=orders/7", ...as)).toMatchObject({ status: 200, json: { entries: [], nextBefore: null } });
    for (const query of ["", "?prefix=orders", "?prefix=invoices/"])
      expect(await read(url, query, ...as)).toMatchObject({ status: 403, json: { code: "forbidden_scope" } });
    expect(await read(url, "?prefix=orders/")).toMatchObject({ status: 401 });
    expect(await read(gateway.url, "")).toMatchObject({ status: 404, json: { code: "not_found" } });
  });

  const wrong = ["?since=yesterday", "?since=2026-02-30T00:00:00Z", "?limit=0", "?limit=1001", "?before=0", "?after=1", "?prefix=%ff"];
  test.for(wrong)("refuses %s", async (query, { startGateway }) => {
    const { url } = await startGateway({ refusedLog: "on" });
    expect(await read(url, query)).toMatchObject({ status: 400, json: { code: "query_invalid" } });
  });

  test("G6 keeps at most so many, and none that is too old", async ({ startGateway, database }) => {
    // It looks every two seconds what is to be forgotten; for longer times every ten.
    const { url } = await startGateway({ refusedLog: "on", refusedRows: 5, refusedRetentionMs: 40_000 });
    const observer = new pg.Client({ connectionString: database.url });
    await observer.connect();
    const rows = async () => (await observer.query("select presented_token::integer as token from palisade.refusals order by 1")).rows;
    const name = uniqueName();
    await put(url, name, { token: 99, value: {} });
    for (let token = 1; token <= 9; token += 1) await put(url, name, { token, value: {} });
    try {
      await eventually(rows).toEqual([5, 6, 7, 8, 9].map((token) => ({ token })));
      await startGateway({ refusedLog: "on", refusedRetentionMs: 1_000 });
      await eventually(rows).toEqual([]);
    } finally {
      await observer.end();
    }
  });
});

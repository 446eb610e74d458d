// The writes that a gateway refused, as it tells and logs them, and who may read it.
import { createGatewayClient } from "@palisade/client";
import { makeApiKey } from "@palisade/gateway";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put, send } from "../support/wire.js";

const read = (url: string, query: string, ...headers: string[]) => send(url, { method: "GET", path: `/v1/refused${query}`, headers });

describe("refused writes", () => {
  test("say what was refused to whom and why, newest first, in pages and from a time on", async ({ startGateway }) => {
    const { url } = await startGateway();
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
    expect(await codes()).toEqual([
      ["fencing_token_stale", 3, 35],
      ["etag_mismatch", 35, null],
      ["fencing_token_stale", 34, 35],
    ]);
    const first = await client.refused({ prefix, limit: 2 });
    expect(first).toMatchObject({ ok: true, nextBefore: expect.any(Number), entries: [{ caller: expect.any(String) }, {}] });
    expect(first.ok && Date.parse(first.since)).toBeLessThanOrEqual(startedAt.getTime());
    const rest = await client.refused({ prefix, limit: 2, before: first.ok ? (first.nextBefore ?? 0) : 0 });
    expect(rest).toMatchObject({ ok: true, nextBefore: null, entries: [{ code: "fencing_token_stale", presentedToken: 34 }] });
    expect(await client.refused({ prefix, since: new Date(Date.now() + 60_000) })).toMatchObject({ ok: true, entries: [] });
    expect(await client.refused({ prefix: `${prefix}b` })).toMatchObject({ ok: true, entries: [] });
  });

  test("are told only under a scope that covers the prefix", async ({ startGateway }) => {
    const worker = makeApiKey();
    const { url } = await startGateway({ apiKeys: [{ id: "w", sha256: worker.sha256, scopes: ["read:orders/"] }] });
    const as = ["Authorization", `Bearer ${worker.key}`];
    expect(await read(url, "?prefix=orders/7", ...as)).toMatchObject({
      status: 200,
      json: { since: expect.any(String), entries: [], nextBefore: null },
    });
    for (const query of ["", "?prefix=orders", "?prefix=invoices/"])
      expect(await read(url, query, ...as)).toMatchObject({ status: 403, json: { code: "forbidden_scope" } });
    expect(await read(url, "?prefix=orders/")).toMatchObject({ status: 401 });
  });
});

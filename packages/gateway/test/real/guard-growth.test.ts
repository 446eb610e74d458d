// What may grow is bounded: the time of a patch, the size of a document, and the history.
import type { FencedStore } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put } from "../support/sql.js";

const members = (count: number, value: (index: number) => unknown): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`member ${index}`, value(index)])));
const patch = (store: FencedStore, resource: string, value: string) => store.write({ op: "patch", resource, token: 5, value });

describe("G6 a patch of ten thousand members", () => {
  test("G6 is stored within the time for a write, and so are its neighbours", async ({ openStore }) => {
    const store = await openStore({ writeTimeoutMs: 5_000 });
    const [resource, ...others] = Array.from({ length: 20 }, () => uniqueName("large"));
    await store.write(
      put(
        resource ?? "",
        5,
        members(10_000, (index) => ({ kept: index })),
      ),
    );
    const verdicts = await Promise.all([
      patch(
        store,
        resource ?? "",
        members(10_000, (index) => (index % 2 === 0 ? null : { added: index })),
      ),
      ...others.map((other) => store.write(put(other, 5, "1"))),
    ]);
    expect(new Set(verdicts.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
    const read = await store.read(resource ?? "");
    const expected = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, half) => [`member ${half * 2 + 1}`, { kept: half * 2 + 1, added: half * 2 + 1 }]),
    );
    expect(JSON.parse(read.kind === "found" ? read.value : "null")).toEqual(expected);
  });
});

describe("G6 a stored document", () => {
  const documentLimitBytes = 1_000;

  test("G6 grows by patches up to its limit, and the patch that is too much says so and changes nothing", async ({ openStore }) => {
    const store = await openStore({ documentLimitBytes });
    const [resource, other] = [uniqueName("large"), uniqueName("large")];
    await store.write(put(resource, 5, "{}"));
    expect(await patch(store, resource, JSON.stringify({ a: "x".repeat(600) }))).toMatchObject({ kind: "accepted", rev: 2 });
    const [refused, neighbour] = await Promise.all([
      patch(store, resource, JSON.stringify({ b: "ü".repeat(300) })),
      store.write(put(other, 5, "1")),
    ]);
    // Both members, as they would be answered.
    expect(refused).toEqual({ kind: "document_too_large", resource, bytes: 1_218, limitBytes: documentLimitBytes });
    expect(neighbour).toMatchObject({ kind: "accepted" });
    expect(await store.read(resource)).toMatchObject({ rev: 2 });
    expect(await patch(store, resource, JSON.stringify({ a: null, b: "ü".repeat(300) }))).toMatchObject({ kind: "accepted", rev: 3 });
  });

  test("G6 is not put when it is too large, alone or in a transaction; a seal and a delete of a larger one pass", async ({ openStore }) => {
    const [store, earlier] = [await openStore({ documentLimitBytes }), await openStore()];
    const [resource, other] = [uniqueName("large"), uniqueName("large")];
    const large = JSON.stringify("ü".repeat(500));
    expect(await store.write(put(resource, 5, large))).toEqual({
      kind: "document_too_large",
      resource,
      bytes: 1_002,
      limitBytes: documentLimitBytes,
    });
    const operations = [put(other, 5, "{}"), put(resource, 5, large)];
    expect(await store.transaction({ operations })).toMatchObject({
      kind: "refused",
      refusals: [{ index: 1, refusal: { kind: "document_too_large", bytes: 1_002 } }],
    });
    await earlier.write(put(resource, 5, JSON.stringify({ a: "x".repeat(2_000) })));
    const growing = { op: "patch", resource, token: 5, value: '{"b":1}' } as const;
    expect(await store.transaction({ operations: [put(other, 5, "{}"), growing] })).toMatchObject({
      kind: "refused",
      refusals: [{ index: 1, refusal: { kind: "document_too_large", bytes: 2_017, limitBytes: documentLimitBytes } }],
    });
    expect(await store.read(other)).toMatchObject({ kind: "unknown_resource" });
    expect(await store.write({ op: "seal", resource, token: 6 })).toMatchObject({ kind: "accepted" });
    expect(await store.write({ op: "delete", resource, token: 6 })).toMatchObject({ kind: "accepted" });
  });
});

describe("G6 the history", () => {
  test("G6 is forgotten as fast as it comes, and not before its time", { timeout: 60_000 }, async ({ openStore, connect }) => {
    const client = await connect();
    await client.query(`insert into palisade.history (rev, token, seq, written_at, resource, op)
      select n, 1, 0, now() - interval '2 minutes', 'forgotten', 'put' from generate_series(1, 200000) as n`);
    const store = await openStore({ history: "on", historyRetentionMs: 60_000 });
    const resource = uniqueName("kept");
    await store.write(put(resource, 5, "1"));
    const left = async () => (await client.query("select count(*)::int as entries from palisade.history")).rows[0];
    await expect.poll(left, { timeout: 40_000, interval: 100 }).toEqual({ entries: 1 });
    expect(await store.history({ resource, limit: 9 })).toMatchObject({ entries: [{ rev: 1 }] });
  });
});

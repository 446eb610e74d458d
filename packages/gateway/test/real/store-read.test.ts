// Pages of names, complete, in the order of bytes, without repetition and bounded in size, and the
// history, which is forgotten in time. Which reads share a statement: test/unit/store.
import type { FencedStore, ListRequest } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put } from "../support/sql.js";

async function pages(store: FencedStore, request: ListRequest): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ ...request, cursor });
    if (page.kind !== "page") throw new Error(page.reason);
    found.push(page.items.map(({ resource }) => resource));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

describe("a list", () => {
  test("pages through all names with a prefix, each once, in the order of their bytes", async ({ store }) => {
    const prefix = `${uniqueName("list")}/`;
    const inByteOrder = ["", "%", "100%", "A", "_", "a", "b/c", "b/c/d", "z", "é", "\u{ffff}", "𝄞", "\u{10ffff}", "\u{10ffff}x"];
    const names = inByteOrder.map((name) => `${prefix}${name}`);
    const outside = [prefix.slice(0, -1), `${prefix.slice(0, -1)}0`, `${prefix.slice(0, -1)}.`];
    await store.transaction({ operations: [...outside, ...names].map((name) => put(name, 1, "1")) });
    for (const limit of [1, 3, 14, 100]) {
      const found = await pages(store, { prefix, limit });
      expect(found.flat()).toEqual(names);
      expect(Math.max(...found.map((page) => page.length))).toBe(Math.min(limit, names.length));
    }
  });

  test("of large documents ends its pages early", async ({ store }) => {
    const prefix = `${uniqueName("large")}/`;
    const names = Array.from({ length: 40 }, (_, index) => `${prefix}${100 + index}`);
    const large = JSON.stringify("x".repeat(150_000));
    await store.transaction({ operations: names.map((name) => put(name, 1, large)) });
    const found = await pages(store, { prefix, limit: 100, include: "documents" });
    expect([found.flat(), found.length]).toEqual([names, 2]);
    expect(await pages(store, { prefix, limit: 100 })).toHaveLength(1);
  });
});

test("G6 the history is forgotten as fast as it comes, and not before its time", async ({ openStore, connect }) => {
  const client = await connect();
  await client.query(`insert into palisade.history (rev, token, seq, written_at, resource, op)
    select n, 1, 0, now() - interval '2 minutes', 'forgotten', 'put' from generate_series(1, 100000) as n`);
  const store = await openStore({ history: "on", historyRetentionMs: 60_000 });
  const resource = uniqueName("kept");
  await store.write(put(resource, 5, "1"));
  const left = async () => (await client.query("select count(*)::int as entries from palisade.history")).rows[0];
  await expect.poll(left, { timeout: 25_000, interval: 100 }).toEqual({ entries: 1 });
  expect(await store.history({ resource, limit: 9 })).toMatchObject({ entries: [{ rev: 1 }] });
});

// What is read: single resources, pages of names, complete, in the order of bytes, without
// repetition and bounded in size, and the history, which is forgotten in time.
import type { FencedStore, ListRequest } from "../../src/fenced-store.js";
import { firstNameAfter } from "../../src/store/reads.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put, untilSomebodyWaits } from "../support/sql.js";

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

const inByteOrder = (names: readonly string[]): string[] => [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

describe("a read", () => {
  test("at the same time as hundreds of others is answered with what it would be told alone", async ({ store }) => {
    const prefix = `${uniqueName("together")}/`;
    const kept = Array.from({ length: 60 }, (_, i) => `${prefix}${i}"\\{},é`);
    for (const [i, name] of kept.entries()) await store.write({ op: "put", resource: name, token: i + 1, value: `{"n":${i}}` });
    await store.write({ op: "delete", resource: kept[7] ?? "", token: 99 });
    await store.write({ op: "seal", resource: `${prefix}sealed`, token: 5 });
    const names = [...kept, `${prefix}sealed`, `${prefix}missing`, "NULL"];
    const alone = new Map<string, unknown>();
    for (const name of names) alone.set(name, await store.read(name));
    const wanted = Array.from({ length: 400 }, (_, i) => names[(i * 7) % names.length] ?? "");
    const found = await Promise.all(wanted.map((name) => store.read(name)));
    expect(found).toEqual(wanted.map((name) => alone.get(name)));
  });
});

describe("a read that waits for those under way", () => {
  test("G6 is refused in time, however long they take", async ({ openStore, connect }) => {
    const [store, holder, observer] = [await openStore({ connectTimeoutMs: 2_000 }), await connect(), await connect()];
    const resource = uniqueName();
    await store.write(put(resource, 1, "1"));
    await holder.query("begin; lock table palisade.resources in access exclusive mode");
    const underWay = Array.from({ length: 4 }, () => store.read(resource));
    await untilSomebodyWaits(observer, underWay.length);
    expect(await store.read(resource)).toMatchObject({ kind: "unavailable", reason: "overloaded" });
    await holder.query("commit");
    expect((await Promise.all(underWay)).map(({ kind }) => kind)).toEqual(underWay.map(() => "found"));
  });
});

describe("a list", () => {
  test("pages through all names with a prefix, each once, in the order of their bytes", async ({ store }) => {
    const prefix = `${uniqueName("list")}/`;
    const names = ["", "a", "A", "b/c", "b/c/d", "é", "z", "\u{ffff}", "𝄞", "\u{10ffff}", "\u{10ffff}x", "%", "_", "100%"].map(
      (name) => `${prefix}${name}`,
    );
    const outside = [prefix.slice(0, -1), `${prefix.slice(0, -1)}0`, `${prefix.slice(0, -1)}.`];
    await store.transaction({ operations: [...names, ...outside].map((name) => put(name, 1, "1")) });
    for (const limit of [1, 3, 14, 100]) {
      const found = await pages(store, { prefix, limit });
      expect(found.flat()).toEqual(inByteOrder(names));
      expect(Math.max(...found.map((page) => page.length))).toBe(Math.min(limit, names.length));
    }
    expect((await pages(store, { prefix: `${prefix}b/`, limit: 10 })).flat()).toEqual([`${prefix}b/c`, `${prefix}b/c/d`]);
  });

  test("shows fences without documents when asked, and documents when asked", async ({ store }) => {
    const prefix = `${uniqueName("list")}/`;
    await store.transaction({
      operations: [put(`${prefix}a`, 3, "12345678901234567890"), { op: "seal", resource: `${prefix}b`, token: 4 }],
    });
    const asked = { prefix, limit: 9, tombstones: "include" } as const;
    expect(await store.list(asked)).toEqual({
      kind: "page",
      nextCursor: null,
      items: [
        { resource: `${prefix}a`, token: 3, rev: 1, seq: 0, holder: null, updatedAt: expect.any(Date) },
        { resource: `${prefix}b`, token: 4, rev: 0, seq: 0, holder: null, updatedAt: expect.any(Date) },
      ],
    });
    expect(await store.list({ prefix, limit: 9 })).toMatchObject({ items: [{ resource: `${prefix}a` }] });
    const page = await store.list({ ...asked, include: "documents" });
    expect(page.kind === "page" && page.items.map(({ value }) => value)).toEqual(["12345678901234567890", undefined]);
  });

  test("of large documents ends its pages early", async ({ store }) => {
    const prefix = `${uniqueName("large")}/`;
    const large = JSON.stringify("x".repeat(1_500_000));
    const names = Array.from({ length: 5 }, (_, index) => `${prefix}${index}`);
    for (const name of names) await store.write({ op: "put", resource: name, token: 1, value: large });
    const found = await pages(store, { prefix, limit: 100, include: "documents" });
    expect(found.flat()).toEqual(names);
    expect((await pages(store, { prefix, limit: 100 })).length).toBe(1);
  });

  test("with a cursor that no page gave ends at once", async ({ store }) => {
    for (const cursor of ["", "\0", "x".repeat(600), "\ud800"])
      expect(await store.list({ limit: 5, cursor })).toEqual({ kind: "page", items: [], nextCursor: null });
  });

  test("uses the key, and reads no more of it than the page", async ({ connect, store }) => {
    const client = await connect();
    const prefix = uniqueName("plan");
    await store.write({ op: "put", resource: prefix, token: 1, value: "1" });
    await client.query("set enable_seqscan = off; set enable_bitmapscan = off");
    const { rows } = await client.query<{ "QUERY PLAN": string }>(
      "explain select resource from palisade.resources where resource >= $1 and resource < $2 order by resource limit 10",
      [prefix, firstNameAfter(prefix)],
    );
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toContain("using resources_pkey");
    expect(plan).not.toContain("Sort");
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

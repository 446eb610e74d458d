// Which reads share a statement, and what becomes of each when that fails: over connections that
// answer when the test says so.
import { drizzle } from "drizzle-orm/node-postgres";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Unavailable } from "../../../src/fence/verdict.js";
import type { ReadPool } from "../../../src/store/read-pool.js";
import { firstNameAfter, ResourceReads } from "../../../src/store/reads.js";

const lost: Unavailable = { kind: "unavailable", reason: "unreachable", outcome: "not_applied" };
const busy: Unavailable = { kind: "unavailable", reason: "overloaded", outcome: "not_applied" };
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Names that begin with "no" have no row; every other document is its name, so wide. */
function opened({ wide = 1, mostWaiting = 1_000, maxWaitMs = 60_000 } = {}) {
  const asked: { readonly names: readonly string[]; answer(): void; fail(): void }[] = [];
  const query = (_config: unknown, [names]: [string | readonly string[]]) =>
    new Promise((resolve, reject) => {
      const list = typeof names === "string" ? [names] : names;
      const rows = [...list]
        .reverse()
        .filter((name) => !name.startsWith("no"))
        .map((name) => [name, "7", "1", "0", null, "2026-01-01 00:00:00+00", name.padEnd(wide)]);
      asked.push({ names: list, answer: () => resolve({ rows }), fail: () => reject(new Error("cut")) });
    });
  const db = drizzle({ query } as never);
  const pool = {
    db,
    refusal: (waiting: number) => (waiting >= mostWaiting ? busy : undefined),
    read: async (work: (given: typeof db) => Promise<unknown>) => await work(db).catch(() => lost),
  };
  const reads = new ResourceReads(pool as unknown as ReadPool, maxWaitMs);
  const read = async (name: string, how: "with others" | "alone" = "with others") => {
    const result = await reads.read(name, how);
    return result.kind === "found" ? result.value.trim() : result.kind;
  };
  return { asked, read, reads };
}

const names = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `r${from + i}`);

describe("reads of single resources", () => {
  test("are sent at once while few are under way, and then those that wait share one statement, each with its own answer", async () => {
    const { asked, read } = opened();
    const wanted = [...names(0, 6), "none", "r5", ...names(6, 30)];
    const found = Promise.all(wanted.map((name) => read(name)));
    await turn();
    expect(asked.map((one) => one.names)).toEqual([["r0"], ["r1"], ["r2"], ["r3"]]);
    asked[2]?.answer();
    await turn();
    expect(asked[4]?.names).toEqual([...names(4, 6), "none", "r5", ...names(6, 18)]);
    asked[4]?.answer();
    await turn();
    expect(asked[5]?.names).toEqual(names(18, 30));
    for (const one of asked) one.answer();
    expect(await found).toEqual(wanted.map((name) => (name === "none" ? "unknown_resource" : name)));
    expect(asked).toHaveLength(6);
  });

  test("G6 share fewer where documents are large", async () => {
    const { asked, read } = opened({ wide: 400_000 });
    const found = names(0, 9).map((name) => read(name));
    await turn();
    asked[0]?.answer();
    await turn();
    expect(asked[4]?.names).toEqual(["r4", "r5"]);
    for (let i = 0; i < asked.length; i += 1) {
      asked[i]?.answer();
      await turn();
    }
    expect(await Promise.all(found)).toEqual(names(0, 9));
  });

  test("G6 that shared a statement which failed go each by itself, and so do those that wait", async () => {
    const { asked, read } = opened();
    const found = Promise.all(names(0, 24).map((name) => read(name)));
    await turn();
    asked[0]?.answer();
    await turn();
    expect(asked[4]?.names).toEqual(names(4, 20));
    asked[4]?.fail();
    await turn();
    expect(asked.slice(5).map((one) => one.names)).toEqual(names(4, 24).map((name) => [name]));
    asked[6]?.fail();
    for (const one of asked) one.answer();
    expect(await found).toEqual(names(0, 24).map((name) => (name === "r5" ? "unavailable" : name)));
  });

  test("G6 that have waited too long for the others are not sent", async () => {
    const { asked, read } = opened({ maxWaitMs: 5 });
    const found = names(0, 4).map((name) => read(name));
    expect(await Promise.all(names(4, 9).map((name) => read(name)))).toEqual(names(4, 9).map(() => "unavailable"));
    for (const one of asked) one.answer();
    expect(await Promise.all(found)).toEqual(names(0, 4));
    expect(asked).toHaveLength(4);
  });

  test("G6 are refused while too many wait, and never share a statement where their rows are apart", async () => {
    const { asked, read } = opened({ mostWaiting: 2 });
    const found = Promise.all(names(0, 7).map((name) => read(name)));
    const apart = Promise.all(names(7, 9).map((name) => read(name, "alone")));
    await turn();
    expect(asked.map((one) => one.names)).toEqual([...names(0, 4), ...names(7, 9)].map((name) => [name]));
    for (const one of [...asked]) one.answer();
    await turn();
    for (const one of asked) one.answer();
    expect(await found).toEqual([...names(0, 6), "unavailable"]);
    expect(await apart).toEqual(names(7, 9));
  });
});

// The end of a page must mean the same to JavaScript and to Postgres, which compares bytes.
test("the first name after a prefix is above every name that carries it and not above any other", () => {
  const name = fc.string({ unit: "binary", minLength: 1, maxLength: 6 });
  const compare = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  fc.assert(
    fc.property(name, name, (prefix, other) => {
      const end = firstNameAfter(prefix);
      if (end === undefined) return;
      expect(compare(`${prefix}${other}`, end)).toBe(-1);
      if (compare(other, end) < 0 && compare(other, prefix) >= 0) expect(other.startsWith(prefix)).toBe(true);
    }),
  );
});

// The shard of a name is computed here as Postgres computes it: its own function is the judge.
import fc from "fast-check";
import { Shards, textHash } from "../../src/store/engine.js";
import { describe, expect, test } from "../support/fixtures.js";

describe("the hash of a name", () => {
  test("G6 is that of Postgres, for names of every length and script", async ({ connect }) => {
    const client = await connect();
    const scripts = fc.string({ unit: "grapheme", maxLength: 40 }).filter((name) => !name.includes("\0"));
    const names = [
      ...fc.sample(scripts, 500),
      ...Array.from({ length: 40 }, (_, length) => "x".repeat(length)),
      "Straße/π/🦀",
      "\u{10ffff}",
    ];
    const { rows } = await client.query<{ name: string; hash: number }>(
      `select name, pg_catalog.hashtext(name collate "C") as hash from unnest($1::text[]) as given(name)`,
      [names],
    );
    expect(rows.map(({ name }) => ({ name, hash: textHash(name) }))).toEqual(rows);
  });

  test("is in the range of exactly the shard that is named", () => {
    const shards = Array.from({ length: 8 }, (_, index) => {
      const least = -2_147_483_648 + index * 536_870_912;
      return { least, most: least + 536_870_911, worker: index % 2 };
    });
    const map = new Shards([...shards].reverse());
    fc.assert(
      fc.property(fc.string(), (name) => {
        const { least, most } = map.shardOf(name);
        expect(textHash(name)).toBeGreaterThanOrEqual(least);
        expect(textHash(name)).toBeLessThanOrEqual(most);
      }),
    );
    expect(map.workers).toEqual([0, 1]);
  });
});

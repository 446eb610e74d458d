// The checker of G8: every stored write is told once and in order, and nothing else is.
import { describe, expect, test } from "vitest";
import { brokenStreams } from "../../src/checkers/changes.js";
import type { Entry } from "../../src/history/history.js";

const prefix = "ledgers/";
const entry = (resource: string, rev: number): Entry => ({ resource, rev, token: 7, seq: 1, op: "put" });
const stored = [entry("ledgers/1", 1), entry("ledgers/1", 2), entry("ledgers/2", 1), entry("other/1", 1)];
const [first, second, third] = stored as [Entry, Entry, Entry, Entry];
const found = (changes: readonly Entry[], failure?: string): readonly string[] =>
  brokenStreams({
    entries: [...stored, { ...entry("ledgers/9", 1), op: "guarded" }],
    streams: [{ reader: "r", prefix, changes, failure }],
  }).map(({ promise, what }) => `${promise} ${what}`);

describe("the stream of changes", () => {
  test("is sound where each write is told once, in the order of revisions", () => {
    expect(found([first, third, second])).toEqual([]);
  });

  test("is not where a write is left out, told twice, told too early, or not stored", () => {
    expect(found([first, second])).toEqual(["G8 r: revision 1 of ledgers/2 with token 7 is stored and was not told"]);
    expect(found([first, first, second, third])).toEqual([expect.stringMatching(/^G8 r: revision 1 of ledgers\/1 .* came after/)]);
    expect(found([second, first, third])).toEqual([expect.stringMatching(/^G8 r: revision 1 of ledgers\/1 .* came after revision 2/)]);
    expect(found([first, second, entry("ledgers/1", 3), third])).toEqual([
      "G8 r: revision 3 of ledgers/1 with token 7 was told and is not stored",
    ]);
  });

  test("is not where it ended", () => {
    expect(found([first, second, third], "changes_gone")).toEqual(["G8 r: the stream ended: changes_gone"]);
  });
});

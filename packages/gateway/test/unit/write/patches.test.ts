// A patch is read and stored by one transaction, of which nothing is left where it is too large.
import { describe, expect, test } from "vitest";
import { TooLarge } from "../../../src/fence/verdict.js";
import type { Row, Work, WriteConnection } from "../../../src/store/write-connection.js";
import { mergedRows, mostPatches } from "../../../src/write/patches.js";
import { PlainWrites } from "../../../src/write/plain-writes.js";
import type { QueuedRow } from "../../../src/write/statement.js";

const patch = (resource: string): QueuedRow => ({
  request: { op: "patch", resource, token: 5, value: '{"b":2}' },
  verified: true,
  known: true,
  fold: [],
});
const stored = (resource: string, document = '{"a": 1}'): Row => [resource, 5, 0, 7, false, document];

/** Answers each statement of a transaction in turn, and nothing outside of one. */
function connectionOf(...answers: readonly (readonly Row[])[]): { readonly connection: WriteConnection; readonly sent: string[] } {
  const sent: string[] = [];
  const run: Parameters<Work>[0] = async ({ name }) => {
    sent.push(name.replace(/-[0-9a-f]{12}$/, ""));
    return answers[sent.length - 1] ?? [];
  };
  const connection = {
    run: () => expect.unreachable("a statement outside of the transaction"),
    transaction: async (_name: string, work: Work) => ({ rows: (await work(run)) ?? [] }),
  };
  return { connection: connection as unknown as WriteConnection, sent };
}

describe("a patch", () => {
  const writes = new PlainWrites({ history: "off", durability: "local", documentLimitBytes: 1_000 });

  test("G3 is read and stored in one transaction, so that no other server has another document by that revision", async () => {
    for (const send of [
      (connection: WriteConnection) => writes.each(connection, [patch("r")]),
      (connection: WriteConnection) => writes.all(connection, [patch("r")], false),
    ]) {
      const { connection, sent } = connectionOf([stored("r")], [["r", 8, 1, false, null]]);
      expect(await send(connection)).toEqual({ rows: [["r", 8, 1, false, '{"a": 1, "b": 2}']] });
      expect(sent).toEqual(["palisade-patched", expect.stringMatching(/^palisade-(known-one|any-all)$/)]);
    }
  });

  test("G1 that its row refuses is not stored, and keeps a whole transaction from being stored", async () => {
    const found = [stored("r").with(1, 6), stored("s")];
    const { connection, sent } = connectionOf(found, [["s", 8, 1, false, null]], found);
    expect(await writes.each(connection, [patch("r"), patch("s")])).toMatchObject({ rows: [["s", 8, 1, false, expect.any(String)]] });
    expect(await writes.all(connection, [patch("r"), patch("s")], false)).toEqual({ rows: [] });
    expect(sent).toEqual(["palisade-patched", "palisade-known-one", "palisade-patched"]);
  });
});

test("G6 a transaction reads a bounded number of documents at a time, and makes no more than it may hold", async () => {
  const limitBytes = 50 * 1024 * 1024;
  const document = `{"a": "${"x".repeat(33 * 1024 * 1024)}"}`;
  const asked: unknown[] = [];
  const run: Parameters<Work>[0] = async ({ values: [names] }) => {
    asked.push(names);
    return ["a", "b", "c"].map((name) => stored(name, document));
  };
  const merged = mergedRows(run, ["a", "b", "c"].map(patch), limitBytes);
  await expect(merged).rejects.toMatchObject({ failure: { kind: "retry_alone", error: expect.any(TooLarge) } });
  expect([asked, mostPatches(limitBytes), mostPatches(16 * 1024 * 1024)]).toEqual([['{"a"}', '{"b"}'], 1, 4]);
});

// The ledger of a run: what became of the writes from each fault to the next.
import { describe, expect, test } from "vitest";
import { emptyHistory } from "../../src/history/history.js";
import type { Operation } from "../../src/history/records.js";
import { ledger, ledgerTable } from "../../src/report/ledger.js";

const resource = "ledgers/1";
const put = (id: string, seq: number, sentAt: number, outcome: Operation["outcome"]): Operation => {
  return { id, kind: "put", via: "client", resource, author: "c0.0", token: 7, seq, sentAt, answeredAt: sentAt + 10, outcome };
};
const operations = [
  put("before", 1, 100, "done"),
  put("kept", 2, 1_200, "done"),
  put("lost", 3, 1_300, "done"),
  put("perhaps", 4, 1_400, "unknown"),
  put("refused", 5, 1_500, "refused"),
  put("later", 6, 5_000, "done"),
];
const entries = [1, 2, 6].map((seq, i) => ({ resource, rev: i + 1, token: 7, seq, op: "put" }));
const fault = { place: "store" as const, target: "postgres-1" };
const injected = [
  { ...fault, kind: "switchover", fromAt: 4_000, untilAt: 4_500 },
  { ...fault, kind: "client stopped", fromAt: 900, untilAt: 950 },
  { ...fault, kind: "machine killed", fromAt: 1_000, untilAt: 3_000 },
];
const history = { ...emptyHistory, operations, entries };
/** Of the harness, past all gateways. */
const stored = [900, 1_100, 2_100, 4_800];
const rows = ledger({ history, span: { fromAt: 0, untilAt: 6_000 }, injected, stored }, ["switchover", "machine killed"]);

describe("the ledger", () => {
  test("has each accounted fault in order, with what was acknowledged, lost, unknown, and the longest silence", () => {
    expect(rows).toEqual([
      { kind: "machine killed", target: "postgres-1", acknowledged: 2, lost: 1, unknown: 1, silenceMs: 2_690, databaseMs: 1_900 },
      { kind: "switchover", target: "postgres-1", acknowledged: 1, lost: 0, unknown: 0, silenceMs: 1_010, databaseMs: 1_200 },
    ]);
  });

  test("as a table ends with the sums and the longest silence of all", () => {
    const last = ledgerTable(rows).split("\n").at(-1);
    expect(last?.split(/ {2,}/)).toEqual(["all", "3", "1", "1", "2.7", "1.9"]);
  });
});

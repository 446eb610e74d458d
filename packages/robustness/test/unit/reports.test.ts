// What people are told of a run.
import { describe, expect, test } from "vitest";
import { emptyHistory, type LeaseRecord, type Operation } from "../../src/history.js";
import { type Outcome, textReport } from "../../src/report.js";

const resource = "ledgers/1";
const put = (id: string, token: number, sentAt: number, more: Partial<Operation>): Operation => {
  const common = { via: "client", resource, kind: "put", seq: 1, author: "c0.0", outcome: "done" } as const;
  return { ...common, id, token, sentAt, answeredAt: sentAt + 10, ...more };
};
const operations = [
  put("a", 7, 1_000, { on: { rev: 0, by: null }, rev: 1 }),
  put("b", 9, 2_000, { on: { rev: 1, by: "a" }, rev: 2 }),
  put("late", 7, 2_100, { on: { rev: 1, by: "a" }, outcome: "refused", code: "fencing_token_stale" }),
  put("lost", 9, 2_150, { answeredAt: Number.POSITIVE_INFINITY, outcome: "unknown" }),
];
const lease = (client: number, token: number, grantedAt: number): LeaseRecord => {
  return { client, resource, token, beganAt: grantedAt - 1, grantedAt, validUntilAt: grantedAt + 400, releasedAt: grantedAt + 300 };
};
const entries = [7, 9].map((token, i) => ({ resource, rev: i + 1, token, seq: 1, op: "put" }));
const outcome: Outcome = {
  servers: "5 × Redis 7 (/a/path); Postgres 17",
  span: { fromAt: 0, untilAt: 5_000 },
  history: { ...emptyHistory, operations, entries, leases: [lease(0, 7, 900), lease(1_000, 9, 1_950)] },
  violations: [],
  injected: [
    { kind: "node killed", target: "n1", fromAt: 500, untilAt: 2_500 },
    { kind: "store crashed", isOfStore: true, target: "store", fromAt: 3_000, untilAt: Number.POSITIVE_INFINITY },
  ],
  leftOut: {},
  pauses: 1,
};
const violation = { promise: "G1", at: 2_000, resource, what: `${resource}: put b <late>`, lostUpdates: 1 } as const;

describe("a fault run", () => {
  test("tells the operations, the faults, the silence of the store, the verdict and the first findings", () => {
    const text = textReport({ ...outcome, violations: [violation, ...Array(20).fill(violation)] });
    for (const said of [
      "4 operations under 2 leases in 5 s, with 3 faults.",
      "1 refusals saved an update",
      "put (client): done 2, refused 1, unknown 1",
      "store crashed (store): 2.0 s without a stored write",
      "faults: node killed 1, store crashed 1, client stopped itself 1",
      "21 violations, 21 updates lost\n  G1: ledgers/1: put b <late>",
      "and 9 more",
    ])
      expect(text).toContain(said);
  });

  test("of the lock alone tells of its leases, and of the samples of counters", () => {
    const counters = [3, 8, 0].map((floor) => ({ node: "n1", memory: 0, floor, counter: 7 }));
    const alone = { ...outcome, history: { ...emptyHistory, leases: outcome.history.leases, counters } };
    expect(textReport(alone)).toContain("Samples of counters: 2.");
    expect(textReport(alone)).toContain("No violation of T1, T2, L1, L2; counters only rose");
  });
});

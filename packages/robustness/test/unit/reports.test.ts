// What people are told of a run, and which curves of a soak are judged.
import { describe, expect, test } from "vitest";
import { type Finding, findAll, isBad, type Row, standsOut } from "../../src/checkers/curves.js";
import { emptyHistory, type LeaseRecord, type Operation } from "../../src/history.js";
import { type Outcome, soakReport, textReport } from "../../src/report.js";

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

/** Half an hour. */
function rowsOf(values: (i: number) => Row["values"]): Row[] {
  return Array.from({ length: 360 }, (_, i) => ({ atMs: (i + 1) * 5_000, values: values(i + 1) }));
}

function named(id: string, findings: readonly Finding[]): Finding {
  return findings.find(({ panel }) => panel.id === id) as Finding;
}

describe("a soak", () => {
  const rows = rowsOf((i) => ({ "client-timers/client 1": 10 + i, "client-timers/client 2": 10 + (i % 2), "redis-keys/n1": 5 }));
  const findings = findAll(rows);
  const soaked = { rows, disturbances: [{ atMs: 9, what: "node slow" }], servers: ["Redis"], operations: { read: 12_345 }, failures: {} };

  test("is judged curve by curve, a panel by its worst, and the leaking client stands out", () => {
    const [timers, keys] = [named("client-timers", findings), named("redis-keys", findings)];
    expect([timers, keys].map(({ curves }) => curves.some(isBad))).toEqual([true, false]);
    expect([timers, keys].map(standsOut)).toEqual([true, false]);
    expect(timers.worst.name).toBe("client 1");
  });

  test("does not call a client leaky that grows as all of its peers do", () => {
    const all = rowsOf((i) => ({ "client-rss/client 1": 80 + i, "client-rss/client 2": 70 + i }));
    const rss = named("client-rss", findAll(all));
    expect([rss.curves.some(isBad), standsOut(rss)]).toEqual([true, false]);
  });

  test("names what is not flat", () => {
    const text = soakReport(soaked, findings);
    expect(text).toContain("12 345 operations in 30.0 min");
    expect(text).toMatch(/Client, Active timers: RISING \(client 1\) \+720\/h/);
    expect(text).toContain("30.0 minutes of contended load: 3 curves, 1 not flat");
  });
});

// What a run under faults shows: the words, and one picture with the whole run and close-ups.
import { describe, expect, test } from "vitest";
import { emptyHistory } from "../../src/history/history.js";
import { type LeaseRecord, type Operation, successor } from "../../src/history/records.js";
import { page } from "../../src/report/drawing.js";
import type { Outcome } from "../../src/report/outcome.js";
import { textReport } from "../../src/report/text.js";
import { timeline } from "../../src/report/timeline.js";
import { parseTags } from "./tags.js";

const resource = "ledgers/1";
const common = { via: "client" as const, resource, kind: "put" as const, seq: 1 };
const operations: Operation[] = [
  { ...common, id: "a", author: "c0.0", token: 7, on: { rev: 0, by: null }, sentAt: 1_000, answeredAt: 1_010, outcome: "done", rev: 1 },
  { ...common, id: "b", author: "c1.0", token: 9, on: { rev: 1, by: "a" }, sentAt: 2_000, answeredAt: 2_010, outcome: "done", rev: 2 },
  {
    ...common,
    id: "late",
    author: "c0.0",
    token: 7,
    on: { rev: 1, by: "a" },
    sentAt: 2_100,
    answeredAt: 2_110,
    outcome: "refused",
    code: "fencing_token_stale",
  },
  { ...common, id: "lost", author: "c1.1", token: 9, seq: 2, sentAt: 2_150, answeredAt: Number.POSITIVE_INFINITY, outcome: "unknown" },
];
const lease = (client: number, token: number, grantedAt: number): LeaseRecord => {
  return { client, resource, token, beganAt: grantedAt - 1, grantedAt, validUntilAt: grantedAt + 400, releasedAt: grantedAt + 300 };
};
const last = { n: 2, by: "b", chain: successor(successor(null, "a"), "b").chain };

const outcome: Outcome = {
  servers: "5 × Redis 7 (/a/path); Postgres 17",
  span: { fromAt: 0, untilAt: 5_000 },
  history: {
    ...emptyHistory,
    operations,
    leases: [lease(0, 7, 900), lease(1_000, 9, 1_950)],
    pauses: [{ client: 0, fromAt: 1_300, untilAt: 2_090 }],
    entries: [
      { resource, rev: 1, token: 7, seq: 1, op: "put" },
      { resource, rev: 2, token: 9, seq: 1, op: "put" },
    ],
    finals: [{ resource, rev: 2, token: 9, document: last }],
  },
  ambushed: [],
  violations: [],
  injected: [
    { kind: "node killed", place: "nodes", target: "n<1>", fromAt: 500, untilAt: 2_500 },
    { kind: "store crashed", place: "store", target: "store", fromAt: 3_000, untilAt: Number.POSITIVE_INFINITY },
  ],
  leftOut: {},
  pauses: 1,
  traps: {},
  ledger: [],
  remarks: [],
};
const violation = { promise: "G1", at: 2_000, resource, what: `${resource}: put b <late>`, lostUpdates: 1 } as const;
const told = { title: "Palisade fault run s", repeat: "npm run faults -- --seed s" };

describe("the picture of a run", () => {
  test("shows the whole run with its faults, and one of the refusals that saved an update", () => {
    const svg = timeline(outcome, told);
    expect(parseTags(svg)).toEqual([]);
    expect(svg).not.toMatch(/NaN|undefined|Infinity|href|url\(/);
    for (const text of [
      "n&lt;1&gt;",
      "store crashed",
      "No violation of T1",
      "One of 1 refusals that saved an update: c0.0 had read revision 1",
    ])
      expect(svg).toContain(text);
    expect(svg).toContain("5 × Redis 7; Postgres 17");
    expect(svg.match(/class="lease"/g)?.length).toBeGreaterThanOrEqual(2);
    expect(svg).toContain('class="pause"');
  });

  test("shows what was found from near, and nothing that was saved", () => {
    const svg = timeline({ ...outcome, violations: [violation, { promise: "end", what: "left behind: n1 key" }] }, told);
    expect(parseTags(svg)).toEqual([]);
    expect(svg).toContain("2 violations, 1 updates lost");
    expect(svg).toContain("G1: ledgers/1: put b &lt;late&gt;");
    expect(svg).not.toContain("that saved an update:");
  });

  test("draws a finding that has a moment, however many without one come first, and lists the others", () => {
    const endless = { promise: "end", what: `n0 was not readmitted ${"word ".repeat(60)}within 10 ms` } as const;
    const ends = Array.from({ length: 9 }, (_, i) => ({ promise: "end", what: `n${i + 1} was not readmitted within 10 ms` }) as const);
    const svg = timeline({ ...outcome, violations: [endless, ...ends, violation] }, told);
    expect(parseTags(svg)).toEqual([]);
    expect(svg).toContain('class="title" x="28"');
    expect(svg).toContain("G1: ledgers/1: put b &lt;late&gt;");
    for (const shown of [svg, page("a run", svg)]) {
      const words = shown.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
      expect(words).toContain(`end: ${endless.what}`);
      expect(words).toContain("end: n7 was not readmitted within 10 ms and 2 more");
      expect(words).not.toContain("n8 was not readmitted");
    }
  });

  test("of a run of the lock alone shows its leases over time", () => {
    const svg = timeline({ ...outcome, history: { ...emptyHistory, leases: outcome.history.leases } }, told);
    expect(parseTags(svg)).toEqual([]);
    expect(svg).toContain("lease granted");
    expect(svg).not.toContain("write stored");
  });

  test("stands in a page that needs no other file", () => {
    const html = page("a <run>", timeline(outcome, told));
    expect(html).toContain("<title>a &lt;run&gt;</title>");
    expect(html).toContain("<svg ");
    expect(html).not.toMatch(/<script|<link|src=/);
  });
});

test("the words name the operations, the faults, the verdict and the first findings", () => {
  const text = textReport({ ...outcome, violations: [violation] });
  expect(text).toContain("4 operations under 2 leases in 5 s, with 3 faults.");
  expect(text).toMatch(/put \(client\) +2 +1 +1/);
  expect(text).toContain("faults: node killed 1, store crashed 1, client stopped itself 1");
  expect(text).toContain("1 violation, 1 updates lost\n  G1: ledgers/1: put b <late>");
});

test("the words of a run of the lock alone name the samples of counters and the times a client did not run", () => {
  const counted = { node: "n1", memory: 0, floor: 3, counter: 7 };
  const counters = [counted, { ...counted, counter: 8 }, { ...counted, floor: 0 }];
  const { leases, pauses } = outcome.history;
  const text = textReport({ ...outcome, history: { ...emptyHistory, leases, pauses, counters } });
  expect(text).toContain("Times a client did not run: 1. Samples of counters: 2.");
});

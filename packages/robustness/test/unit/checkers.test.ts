// Each checker against a sound history, and against the same with one thing wrong.
import { describe, expect, test } from "vitest";
import { judge } from "../../src/checkers/judge.js";
import {
  type Document,
  type Entry,
  emptyHistory,
  type History,
  type LeaseRecord,
  type Line,
  leasesOf,
  linesOf,
  type Operation,
  operationsOf,
  successor,
} from "../../src/history.js";
import { savedUpdates } from "../../src/report.js";

const resource = "r";
const a = successor(null, "a");
const b = successor(a, "b");

function operation(facts: Partial<Operation> & Pick<Operation, "id" | "kind" | "sentAt">): Operation {
  return { via: "client", author: "c0.0", resource, answeredAt: facts.sentAt + 5, outcome: "done", ...facts };
}

function write(id: string, sentAt: number, facts: Partial<Operation> = {}): Operation {
  return operation({ id, kind: "put", seq: 1, sentAt, ...facts });
}

function seal(token: number, sentAt: number, seen: { rev: number; document: Document | null }): Operation {
  return operation({ id: `seal ${token}`, kind: "seal", token, sentAt, ...seen });
}

function entry(rev: number, token: number, facts: Partial<Entry> = {}): Entry {
  return { resource, rev, token, seq: 1, op: "put", ...facts };
}

function lease(token: number, grantedAt: number): LeaseRecord {
  return { client: 0, resource, token, beganAt: grantedAt - 1, grantedAt, validUntilAt: grantedAt + 40, releasedAt: grantedAt + 30 };
}

/** Two holders, one update each. */
const sound: History = {
  ...emptyHistory,
  leases: [lease(7, 100), lease(8, 200)],
  operations: [
    seal(7, 101, { rev: 0, document: null }),
    write("a", 110, { token: 7, on: { rev: 0, by: null }, rev: 1 }),
    seal(8, 201, { rev: 1, document: a }),
    write("b", 210, { token: 8, on: { rev: 1, by: "a" }, rev: 2 }),
    operation({ id: "get", kind: "get", sentAt: 220, rev: 2, document: b }),
  ],
  entries: [entry(1, 7), entry(2, 8)],
  finals: [{ resource, rev: 2, token: 8, document: b }],
};

function whatIsWrong(change: Partial<History>): string {
  return judge({ ...sound, ...change })
    .map(({ promise, what }) => `${promise} ${what}`)
    .join("\n");
}

/** The sound operations with one of them changed. */
function changed(id: string, facts: Partial<Operation>): readonly Operation[] {
  return sound.operations.map((one) => (one.id === id ? { ...one, ...facts } : one));
}

test("a history without fault is found to be one", () => {
  expect(judge(sound)).toEqual([]);
  expect(judge(emptyHistory)).toEqual([]);
});

const stale = write("late", 310, { token: 8, seq: 3, outcome: "refused", code: "fencing_token_stale" });
const forged = operation({ id: "forger-1", kind: "forged", via: "intruder", token: 9_999, sentAt: 230 });
const malformed = operation({ id: "careless-1", kind: "malformed", via: "intruder", sentAt: 230 });
const undone = { id: "x", sentAt: 215, rev: 3, document: successor(b, "undone") };
const unknown = changed("b", { outcome: "unknown", answeredAt: Number.POSITIVE_INFINITY });
const overwriting = write("c", 300, { token: 8, seq: 2, on: { rev: 1, by: "a" }, rev: 3 });
const another = write("d", 210, { resource: "s", token: 8, group: "both", outcome: "unknown" });
const having = (...more: readonly Operation[]): Partial<History> => ({ operations: [...sound.operations, ...more] });

test.for<readonly [title: string, change: Partial<History>, found: RegExp]>([
  [
    "G3 success, and nothing stored",
    having(write("c", 300, { token: 8, seq: 2, on: { rev: 2, by: "b" }, rev: 3 })),
    /G3 r: put c .* was answered with success and is not stored/,
  ],
  ["G3 success, and another revision than told", { operations: changed("b", { rev: 5 }) }, /was told to be revision 5 and is 2/],
  ["G3 a refusal, and stored", { operations: changed("b", { outcome: "refused" }) }, /was refused and is stored as revision 2/],
  ["G3 stored twice", { operations: unknown, entries: [...sound.entries, entry(3, 8)] }, /is stored 2 times, as revisions 2, 3/],
  [
    "G3 half a transaction",
    { operations: [...changed("b", { group: "both" }), another] },
    /half a transaction both: r stored, s not stored/,
  ],
  [
    "G3 what nobody asked for",
    { entries: [...sound.entries, entry(3, 8, { seq: 9 })] },
    /revision 3 .* no client with a lease asked for it/,
  ],
  [
    "G3 an update lost, and no order that explains it",
    {
      ...having(overwriting),
      entries: [...sound.entries, entry(3, 8, { seq: 2 })],
      finals: [{ resource, rev: 3, token: 8, document: successor(a, "c") }],
    },
    /made from revision 1 and stored over 2: 1 update is lost\norder /,
  ],
  ["G3 another last document", { finals: [{ resource, rev: 2, token: 8, document: { ...b, n: 1 } }] }, /^G3 r is .* at the end/],
  ["G3 a read of what never was", { operations: changed("get", { document: a }) }, /^G3 .* showed .*\norder /],
  ["G3 a seal that shows what was never stored", having(operation({ ...undone, kind: "seal", token: 8 })), /G3 .* showed/],
  ["G3 a revision missing", { entries: [entry(1, 7), entry(3, 8)] }, /is revision 3, which follows 1/],
  [
    "G1 a lower token behind a higher one, by revision and by time",
    { operations: changed("b", { token: 6 }), entries: [entry(1, 7), entry(2, 6)], leases: [...sound.leases, lease(6, 50)] },
    /^G1 r: put b with token 6;seq=1 \(done\) became revision 2, after .*\nG1 r: put b with token 6;seq=1 \(done\) was accepted, although/,
  ],
  [
    "G1 a write behind a seal",
    { operations: changed("seal 8", { token: 9 }), leases: [...sound.leases, lease(9, 305)] },
    /^G1 .* after seal .*\nG1 .* was accepted/,
  ],
  ["G1 stale without a newer token", having(stale), /^G1 .* is stale, and there was no newer token$/],
  ["G4 a forged token accepted", having(forged), /^G4 .* was accepted/],
  ["G2 what is no token accepted", having(malformed), /^G2 .* was accepted$/],
  ["G4 a fence of nobody", { finals: [{ resource, rev: 2, token: 9_999, document: b }] }, /^G4 r: the fence is 9999, which no holder/],
  ["G4 a fence where intruders were", { strangeFences: [{ resource: "untouched", token: 9_999 }] }, /^G4 untouched: the fence/],
  ["T2 one token twice", { leases: [...sound.leases, lease(8, 300)] }, /T2 r: one token/],
  ["L2 two holders at one time", { leases: [...sound.leases, lease(9, 220)] }, /^L2 r: .* were valid together/],
  [
    "L2 the same where a clock had been set forward before",
    { leases: [...sound.leases, lease(9, 220)], clockJumps: [{ fromAt: 150, untilAt: 151 }] },
    /^L2 /,
  ],
])("%s is found", ([, change, found]) => {
  expect(whatIsWrong(change)).toMatch(found);
});

test.for<readonly [title: string, change: Partial<History>]>([
  ["an unknown write that was stored", { operations: unknown }],
  [
    "an unknown write that was not",
    {
      operations: unknown.filter(({ id }) => id !== "get"),
      entries: [entry(1, 7)],
      finals: [{ resource, rev: 1, token: 8, document: a }],
    },
  ],
  ["a plain read of a write that a failover undid", having(operation({ ...undone, kind: "get" }))],
  ["a stale write with a newer token", { ...having(stale), leases: [...sound.leases, lease(9, 305)] }],
  ["a forged token refused", having({ ...forged, outcome: "refused" })],
  ["what is no token and was not answered", having({ ...malformed, outcome: "unknown" })],
  ["one token for two resources", { leases: [...sound.leases, { ...lease(8, 300), resource: "s" }] }],
  [
    "two holders, where a clock was set forward under the first",
    { leases: [...sound.leases, lease(9, 220)], clockJumps: [{ fromAt: 205, untilAt: 206 }] },
  ],
])("nothing is found in %s", ([, change]) => {
  expect(whatIsWrong(change)).toBe("");
});

test("an update that is lost is counted", () => {
  const change = { ...having(overwriting), entries: [...sound.entries, entry(3, 8, { seq: 2 })] };
  expect(judge({ ...sound, ...change }).map(({ lostUpdates }) => lostUpdates)).toContain(1);
});

describe("a journal", () => {
  const begun = `{"e":"sent","id":"a","at":1,"kind":"put","via":"client","resource":"r","token":7,"seq":1}\n`;

  test("may end in the middle of a line, where its writer was killed: what was begun is unknown", () => {
    const lines = linesOf(`${begun}{"e":"answered","id":"a","at":2,"outc`);
    expect(operationsOf({ author: "c1.0", client: 1_000, lines })).toEqual([
      expect.objectContaining({ id: "a", outcome: "unknown", answeredAt: Number.POSITIVE_INFINITY }),
    ]);
  });

  test("has the lease of a killed holder: it counts until its deadline, and the holder need not have been told", () => {
    const lines = linesOf(
      `{"e":"lease","at":2,"number":1,"resources":["r","s"],"token":7,"beganAt":1,"grantedAt":2,"validUntilAt":50}\n${begun}`,
    );
    const leases = leasesOf({ author: "c1.0", client: 1_000, lines });
    expect(leases.map((record) => [record.resource, record.validUntilAt, record.toldAt])).toEqual([
      ["r", 50, 50],
      ["s", 50, 50],
    ]);
  });

  test("T2 keeps apart two leases with one token of one client, each as its holder knew it last", () => {
    const line = (number: number, at: number, more = {}): Line => {
      return { e: "lease", at, number, resources: ["s"], token: 7, beganAt: 1, grantedAt: 1, validUntilAt: at + 50, ...more };
    };
    const lines = [line(1, 1), line(1, 9, { releasedAt: 9 }), line(2, 20), line(2, 30, { releasedAt: 30 })];
    const leases = leasesOf({ author: "c1.0", client: 1_000, lines });
    expect(leases.map(({ validUntilAt, releasedAt }) => [validUntilAt, releasedAt])).toEqual([
      [59, 9],
      [80, 30],
    ]);
    expect(whatIsWrong({ leases: [...sound.leases, ...leases] })).toMatch(/T2 s: one token/);
  });
});

test("a refusal as stale saved an update where another client had written since the read", () => {
  const late = { ...stale, token: 7, on: { rev: 1, by: "a" } };
  expect(savedUpdates({ ...sound, ...having(late) })).toBe(1);
  expect(savedUpdates({ ...sound, ...having({ ...late, on: { rev: 2, by: "b" } }) })).toBe(0);
});

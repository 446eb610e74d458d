// Each checker against a sound history, and against the same with one thing wrong.
import { describe, expect, test } from "vitest";
import { judge } from "../../src/checkers/judge.js";
import { type Entry, emptyHistory, type History, leasesOf, linesOf, operationsOf } from "../../src/history/history.js";
import { type Document, type LeaseRecord, type Operation, successor } from "../../src/history/records.js";
import { figuresOf } from "../../src/report/text.js";

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

function broken(change: Partial<History>): string[] {
  return [...new Set(judge({ ...sound, ...change }).map(({ promise }) => promise))].sort();
}

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

describe("G3 answers", () => {
  test("with success, and nothing stored", () => {
    const late = write("c", 300, { token: 8, seq: 2, on: { rev: 2, by: "b" }, rev: 3 });
    expect(whatIsWrong({ operations: [...sound.operations, late] })).toMatch(/G3 r: put c .* was answered with success and is not stored/);
  });

  test("with success, and another revision than told", () => {
    expect(whatIsWrong({ operations: changed("b", { rev: 5 }) })).toMatch(/was told to be revision 5 and is 2/);
  });

  test("with a refusal, and stored all the same", () => {
    expect(whatIsWrong({ operations: changed("b", { outcome: "refused", code: "unavailable" }) })).toMatch(
      /was refused and is stored as revision 2/,
    );
  });

  test("unknown ones may be stored or not, but once", () => {
    const unknown = changed("b", { outcome: "unknown", answeredAt: Number.POSITIVE_INFINITY });
    expect(broken({ operations: unknown })).toEqual([]);
    const without = unknown.filter(({ id }) => id !== "get");
    expect(broken({ operations: without, entries: [entry(1, 7)], finals: [{ resource, rev: 1, token: 8, document: a }] })).toEqual([]);
    expect(whatIsWrong({ operations: unknown, entries: [...sound.entries, entry(3, 8)] })).toMatch(/is stored 2 times, as revisions 2, 3/);
  });

  test("for half a transaction", () => {
    const other = write("d", 210, { resource: "s", token: 8, group: "both", outcome: "unknown" });
    const operations = [...changed("b", { group: "both" }), other];
    expect(whatIsWrong({ operations })).toMatch(/half a transaction both: r stored, s not stored/);
  });

  test("for a stored write that no client asked for", () => {
    expect(whatIsWrong({ entries: [...sound.entries, entry(3, 8, { seq: 9 })] })).toMatch(
      /revision 3 .* no client with a lease asked for it/,
    );
  });
});

describe("updates", () => {
  test("G3 one that was made from an older document than the one it replaced has lost what lay between", () => {
    const late = write("c", 300, { token: 8, seq: 2, on: { rev: 1, by: "a" }, rev: 3 });
    const final = { resource, rev: 3, token: 8, document: successor(a, "c") };
    const change = { operations: [...sound.operations, late], entries: [...sound.entries, entry(3, 8, { seq: 2 })], finals: [final] };
    const found = judge({ ...sound, ...change });
    expect(found.map(({ what }) => what).join()).toMatch(/made from revision 1 and stored over 2: 1 update is lost/);
    expect(found.map(({ lostUpdates }) => lostUpdates)).toContain(1);
    expect(found.map(({ promise }) => promise)).toContain("order");
  });

  test("G3 a last document that is not what all updates together make is found", () => {
    expect(broken({ finals: [{ resource, rev: 2, token: 8, document: { ...b, n: 1 } }] })).toEqual(["G3"]);
  });

  test("G3 a read that shows what never was is found", () => {
    expect(broken({ operations: changed("get", { document: a }) })).toEqual(["G3", "order"]);
  });

  test("G3 a revision that is missing is found", () => {
    expect(whatIsWrong({ entries: [entry(1, 7), entry(3, 8)] })).toMatch(/revision 3 follows 1/);
  });

  test("a plain read may show a write that was never answered and that a failover undid, a seal may not", () => {
    const undone = { id: "x", sentAt: 215, rev: 3, document: successor(b, "undone") };
    expect(broken({ operations: [...sound.operations, operation({ ...undone, kind: "get" })] })).toEqual([]);
    expect(broken({ operations: [...sound.operations, operation({ ...undone, kind: "seal", token: 8 })] })).toContain("G3");
  });
});

describe("G1 the fence", () => {
  test("a lower token behind a higher one is found, by revision and by time", () => {
    const operations = [...changed("b", { token: 6 })];
    const found = whatIsWrong({ operations, entries: [entry(1, 7), entry(2, 6)], leases: [...sound.leases, lease(6, 50)] });
    expect(found).toMatch(/G1 r: put b with token 6;seq=1 \(done\) became revision 2, after/);
    expect(found).toMatch(/G1 r: put b with token 6;seq=1 \(done\) was accepted, although/);
  });

  test("a write behind a seal with a higher token is found", () => {
    const operations = sound.operations.map((one) => (one.id === "seal 8" ? { ...one, token: 9 } : one));
    expect(broken({ operations, leases: [...sound.leases, lease(9, 305)] })).toEqual(["G1"]);
  });

  test("a refusal as stale without a newer token is found, and one with it is not", () => {
    const stale = write("late", 310, { token: 8, seq: 3, outcome: "refused", code: "fencing_token_stale" });
    expect(broken({ operations: [...sound.operations, stale] })).toEqual(["G1"]);
    expect(broken({ operations: [...sound.operations, stale], leases: [...sound.leases, lease(9, 305)] })).toEqual([]);
  });
});

describe("intruders", () => {
  const forged = operation({ id: "forger-1", kind: "forged", via: "intruder", token: 9_999, sentAt: 230 });
  const malformed = operation({ id: "careless-1", kind: "malformed", via: "intruder", sentAt: 230 });

  test("G4 a forged token that was accepted is found", () => {
    expect(broken({ operations: [...sound.operations, forged] })).toContain("G4");
    expect(broken({ operations: [...sound.operations, { ...forged, outcome: "refused" }] })).toEqual([]);
  });

  test("G2 what is no token and was accepted is found", () => {
    expect(broken({ operations: [...sound.operations, malformed] })).toEqual(["G2"]);
    expect(broken({ operations: [...sound.operations, { ...malformed, outcome: "unknown" }] })).toEqual([]);
  });

  test("G4 a fence that no holder was ever given is found, wherever it stands", () => {
    expect(broken({ finals: [{ resource, rev: 2, token: 9_999, document: b }] })).toEqual(["G4"]);
    expect(broken({ strangeFences: [{ resource: "untouched", token: 9_999 }] })).toEqual(["G4"]);
  });
});

describe("leases", () => {
  test("T2 one token twice is found, and is no business of another resource", () => {
    expect(broken({ leases: [...sound.leases, lease(8, 300)] })).toContain("T2");
    expect(broken({ leases: [...sound.leases, { ...lease(8, 300), resource: "s" }] })).toEqual([]);
  });

  test("L2 two holders at one time are found, except where a clock was set forward under the first", () => {
    const leases = [...sound.leases, lease(9, 220)];
    expect(broken({ leases })).toEqual(["L2"]);
    expect(judge({ ...sound, leases, clockJumps: [{ fromAt: 205, untilAt: 206 }] })).toEqual([]);
    expect(judge({ ...sound, leases, clockJumps: [{ fromAt: 150, untilAt: 151 }] })).toHaveLength(1);
    expect(judge({ ...sound, leases, clockJumps: [{ fromAt: 225, untilAt: 226 }] })).toHaveLength(1);
  });
});

describe("a journal", () => {
  const begun = `{"e":"sent","id":"a","at":1,"kind":"put","via":"fetch","resource":"r","token":7,"seq":1}\n`;

  test("may end in the middle of a line, where its writer was killed: what was begun is unknown", () => {
    const lines = linesOf(`${begun}{"e":"answered","id":"a","at":2,"outc`);
    expect(operationsOf({ author: "c1.0", client: 1_000, lines })).toEqual([
      expect.objectContaining({ id: "a", outcome: "unknown", answeredAt: Number.POSITIVE_INFINITY }),
    ]);
  });

  test("has the lease of a killed holder: it counts until its deadline, and the holder need not have been told", () => {
    const lines = linesOf(`{"e":"lease","resources":["r","s"],"token":7,"beganAt":1,"grantedAt":2,"validUntilAt":50}\n${begun}`);
    const leases = leasesOf({ author: "c1.0", client: 1_000, lines });
    expect(leases.map((record) => [record.resource, record.validUntilAt, record.toldAt])).toEqual([
      ["r", 50, 50],
      ["s", 50, 50],
    ]);
  });

  test("T2 keeps apart two leases with one token of one client, and the first end of each counts", () => {
    const lease = (at: number): string =>
      `{"e":"lease","resources":["r"],"token":7,"beganAt":${at},"grantedAt":${at},"validUntilAt":${at + 50}}\n`;
    const released = (at: number): string => `{"e":"released","token":7,"resource":"r","at":${at}}\n`;
    const lines = linesOf(lease(1) + released(9) + released(12) + lease(20) + released(30));
    const leases = leasesOf({ author: "c1.0", client: 1_000, lines });
    expect(leases.map(({ grantedAt, releasedAt }) => [grantedAt, releasedAt])).toEqual([
      [1, 9],
      [20, 30],
    ]);
    expect(broken({ leases: [...sound.leases, ...leases.map((one) => ({ ...one, resource: "s" }))] })).toContain("T2");
  });
});

test("the figures count what was saved: stale writes over another client's update", () => {
  const stale = write("late", 310, { token: 7, seq: 2, on: { rev: 1, by: "a" }, outcome: "refused", code: "fencing_token_stale" });
  const history = { ...sound, operations: [...sound.operations, stale] };
  const figures = figuresOf({
    servers: "",
    span: { fromAt: 100, untilAt: 400 },
    history,
    ambushed: [],
    violations: [],
    injected: [],
    leftOut: {},
    pauses: 0,
    remarks: [],
    traps: {},
    ledger: [],
  });
  expect(figures).toMatchObject({ savedUpdates: 1, leases: 2, operations: 6, longestSilenceMs: 185, seconds: 0.3 });
});

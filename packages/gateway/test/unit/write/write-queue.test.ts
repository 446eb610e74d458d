// Which writes go into one batch, in which order, and how much may wait; what a fault of this program in the
// middle of a batch costs; what is remembered of resources to save questions. Needs no server.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Verdict, WriteRequest } from "../../../src/fence/verdict.js";
import { HeldRows, type WriteSlots } from "../../../src/store/slots.js";
import type { WriteConnection } from "../../../src/store/write-connection.js";
import { type BatchEvent, GroupCommit } from "../../../src/write/group-commit.js";
import type { FencedWrites } from "../../../src/write/plain-writes.js";
import { RaiseCheck } from "../../../src/write/raise-check.js";
import { type Entry, WriteQueue, writesOf } from "../../../src/write/write-queue.js";

const limits = { maxBatchRows: 4, maxBatchBytes: 100, documentLimitBytes: 1_000 };

/** A put with a sequence number, which is sent by itself, unless told otherwise. */
function entry(resource: string, rest: Partial<WriteRequest> = {}, verified = true): Entry {
  const request: WriteRequest = { op: "put", resource, token: 1, seq: 1, value: "1", ...rest };
  return {
    request,
    verified,
    known: false,
    settle: () => {},
    attempts: 0,
    fold: [],
    span: undefined,
  };
}

function filled(entries: readonly Entry[], change: Partial<typeof limits> = {}): WriteQueue {
  const queue = new WriteQueue({ ...limits, ...change }, new HeldRows());
  for (const one of entries) queue.add(one);
  return queue;
}

const plainPut = (resource: string, rest: Partial<WriteRequest> = {}): Entry => entry(resource, { seq: undefined, ...rest });
const namesOf = (batch: readonly Entry[]): string[] => batch.map(({ request }) => request.resource);

describe("a batch", () => {
  test("holds patches only or none, and takes turns; of large documents it holds few", () => {
    const patch = (name: string) => entry(name, { op: "patch" });
    const all = () => [patch("a"), entry("b"), patch("c"), entry("d"), patch("e")];
    const queue = filled(all());
    expect([namesOf(queue.take()), namesOf(queue.take()), queue.hasWork]).toEqual([["b", "d"], ["a", "c", "e"], false]);
    const large = filled(all(), { documentLimitBytes: 32 * 1024 * 1024 });
    expect([namesOf(large.take()), namesOf(large.take()), namesOf(large.take())]).toEqual([["b", "d"], ["a", "c"], ["e"]]);
    const turns = filled(
      ["a", "b"].flatMap((name) => [entry(name), patch(`p/${name}`)]),
      { maxBatchRows: 1 },
    );
    expect(Array.from({ length: 4 }, () => namesOf(turns.take()))).toEqual([["a"], ["p/a"], ["b"], ["p/b"]]);
  });

  test("G6 has no resource whose row is held: those go by themselves, one at a time, until one of their writes has passed", () => {
    const heldRows = new HeldRows();
    const queue = new WriteQueue(limits, heldRows);
    for (const name of ["b", "d"]) heldRows.mark(name, "held");
    const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => entry(name)) as [Entry, Entry, Entry, Entry];
    for (const one of [a, b, c, d]) queue.add(one);
    expect([queue.take(), queue.take(), queue.take()]).toEqual([[a, c], [b], []]);
    queue.again(b, "alone");
    expect(queue.take()).toEqual([d]);
    queue.done(d);
    expect(queue.take()).toEqual([b]);
    heldRows.passed("b");
    queue.done(b);
    for (const name of ["a", "b", "d"]) queue.add(entry(name));
    expect([namesOf(queue.take()), namesOf(queue.take())]).toEqual([["b"], ["d"]]);
  });
});

test("plain puts of one resource are folded, but not with, nor past, one that differs in more than its document", () => {
  const others: readonly Entry[] = [
    plainPut("a", { token: 2 }),
    entry("a"),
    plainPut("a", { expected: "present" }),
    plainPut("a", { op: "patch" }),
    plainPut("a", { holder: "other" }),
    entry("a", { seq: undefined }, false), // A token that is not verified.
    Object.assign(plainPut("a"), { attempts: 1 }), // A failure behind it.
  ];
  for (const other of others) {
    const queue = filled([plainPut("a"), plainPut("a"), other, plainPut("a")], { maxBatchRows: 10 });
    const [first] = queue.take() as [Entry];
    expect([other, first.fold.length]).toEqual([other, 1]);
    for (const write of writesOf([first])) queue.done(write);
    expect(queue.take()).toEqual([other]);
  }
});

const resources = ["a", "b", "c", "d", "e", "f"] as const;
const step = fc.oneof(
  fc.record({ add: fc.constantFrom(...resources), kind: fc.constantFrom({}, { seq: undefined }) }),
  fc.record({ mark: fc.constantFrom(...resources) }),
  fc.constantFrom("take", "done", "again", "overdue"),
);

test("whatever comes in whatever order, every write is sent exactly once and each resource keeps its order", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const heldRows = new HeldRows();
      const queue = new WriteQueue(limits, heldRows);
      const added: Entry[] = [];
      const finished: Entry[] = [];
      let inFlight: Entry[] = [];
      const take = () => {
        const batch = queue.take();
        expect(new Set(namesOf([...batch, ...inFlight])).size).toBe(batch.length + inFlight.length);
        expect(writesOf(batch).length).toBeLessThanOrEqual(limits.maxBatchRows);
        inFlight = [...inFlight, ...batch];
      };
      const done = () => {
        for (const one of writesOf(inFlight.splice(0, 1))) {
          queue.done(one);
          finished.push(one);
        }
      };
      for (const one of steps) {
        if (typeof one === "object" && "mark" in one) heldRows.mark(one.mark, "held");
        else if (typeof one === "object") {
          const next = entry(one.add, one.kind);
          queue.add(next);
          added.push(next);
        } else if (one === "overdue") {
          const waiting = added.findIndex((each) => !writesOf(inFlight).includes(each) && !finished.includes(each));
          for (const each of waiting < 0 ? [] : added.splice(waiting, 1)) queue.done(each);
        } else if (one === "take") take();
        else if (one === "done") done();
        else {
          for (const back of writesOf(inFlight.splice(0, 1))) {
            back.attempts += 1;
            queue.again(back, "alone");
          }
        }
      }
      while (finished.length < added.length) {
        take();
        done();
      }
      expect(new Set(finished)).toEqual(new Set(added));
      expect(finished).toHaveLength(added.length);
      for (const name of resources) {
        const ofName = (list: readonly Entry[]) => list.filter(({ request }) => request.resource === name);
        expect(ofName(finished)).toEqual(ofName(added));
      }
    }),
  );
});

test("G3 a batch whose statement throws leaves its slot and its connection, and its writes are unknown", async () => {
  let destroyed = 0;
  const idle = [{ destroy: () => void destroyed++ } as unknown as WriteConnection];
  const slots = { tryTake: () => idle.pop(), release: (connection: WriteConnection) => void idle.push(connection) };
  const each = async () => {
    throw new TypeError("a fault of this program");
  };
  const events: BatchEvent[] = [];
  const commit = new GroupCommit({
    writes: { current: { each } as unknown as FencedWrites },
    heldRows: new HeldRows(),
    slots: slots as unknown as WriteSlots,
    limits: { ...limits, maxQueuedWrites: 9, maxQueuedBytes: 1_000, maxWaitMs: 60_000 },
    observe: (event) => void events.push(event),
  });
  const write = (resource: string) =>
    commit.submit({ op: "put", resource, token: 1, seq: 1, value: "1" }, { verified: true, known: false }) as Promise<Verdict>;
  for (const names of [["a", "b"], ["a"]])
    for (const verdict of await Promise.all(names.map(write)))
      expect(verdict).toMatchObject({ kind: "outcome_unknown", cause: { message: "a fault of this program" } });
  expect([idle.length, destroyed, commit.queued.writes]).toEqual([1, 2, 0]);
  expect(events).toMatchObject([
    { kind: "batch", rows: 2, outcome: "unknown" },
    { kind: "batch", rows: 1, outcome: "unknown" },
  ]);
  await commit.drain();
}, 20_000);

// What the gateway remembers of resources to save questions: a bounded number, and forgetting one
// costs a question, never a verdict.

test("G4 of resources that come and go, the last 10 000 are remembered, and a forgotten one is asked for anew", async () => {
  let questions = 0;
  const verify = async () => {
    questions++;
    return "issued" as const;
  };
  const check = new RaiseCheck({ verify, unreachable: "refuse", observe: () => {} });
  await check.ask("resource 0", 5);
  for (let i = 1; i <= 10_000; i++) check.accepted(`resource ${i}`, 5, "not asked");
  const remembered = Array.from({ length: 10_001 }, (_, i) => i).filter((i) => check.knows(`resource ${i}`));
  expect(remembered).toHaveLength(10_000);
  expect(check.verificationOf("resource 0", 5)).toBe("unverified");
  // Accepted is not verified: the fence may have been lowered since.
  expect(check.verificationOf("resource 1", 5)).toBe("unverified");
  expect(check.verificationOf("resource 1", 6)).toBe("ask");
  await check.ask("resource 0", 5);
  expect(questions).toBe(2);
  expect(check.knows("resource 1")).toBe(false);
});

test("G1 of the fence that refused a write only the database is believed, and not a token that the lock issued", async () => {
  const check = new RaiseCheck({ verify: async () => "issued", unreachable: "refuse", observe: () => {} });
  check.refused([{ refusal: { kind: "stale", resource: "orders/1", presentedToken: 3, currentToken: 5 } }]);
  await check.ask("orders/1", 900);
  expect([check.isStored("orders/1", 5), check.isStored("orders/1", 900)]).toEqual([true, false]);
});

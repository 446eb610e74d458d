// Which writes go into one batch, in which order, and how much may wait. Needs no server.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bytesOf, type Entry, WriteQueue } from "../../../src/guard/write-queue.js";
import { waiterOf } from "../../../src/store/bounded-wait.js";
import { SlowRows } from "../../../src/store/write-slots.js";

const limits = { maxBatchRows: 4, maxBatchBytes: 100 };

function entry(resource: string, rest: { readonly value?: string; readonly keyed?: boolean } = {}): Entry {
  const { value = "1", keyed = false } = rest;
  const request = { op: "put", resource, token: 1, value, ...(keyed ? { idempotency: { key: "k", fingerprint: "f" } } : {}) } as const;
  return {
    ...waiterOf(bytesOf(request)),
    request,
    verified: true,
    known: false,
    settle: () => {},
    attempts: 0,
    place: "behind",
    next: undefined,
  };
}

function filled(entries: readonly Entry[], change: Partial<typeof limits> = {}): WriteQueue {
  const queue = new WriteQueue({ ...limits, ...change }, new SlowRows());
  for (const one of entries) queue.add(one);
  return queue;
}

const namesOf = (batch: readonly Entry[]): string[] => batch.map(({ request }) => request.resource);

describe("a batch", () => {
  test("has the oldest writes, sorted by resource, up to its limits of rows and bytes", () => {
    const queue = filled(["d", "b", "a", "c", "e"].map((name) => entry(name)));
    expect(namesOf(queue.take())).toEqual(["a", "b", "c", "d"]);
    expect(namesOf(queue.take())).toEqual(["e"]);
    expect(queue.take()).toEqual([]);
    const large = filled([entry("a", { value: "x".repeat(98) }), entry("b"), entry("c", { value: "x".repeat(500) }), entry("d")]);
    expect([namesOf(large.take()), namesOf(large.take()), namesOf(large.take()), namesOf(large.take())]).toEqual([
      ["a"],
      ["b"],
      ["c"],
      ["d"],
    ]);
  });

  test("never holds a resource twice, nor one that is in flight", () => {
    const [first, second, third] = [entry("a"), entry("a"), entry("a")];
    const queue = filled([first, second, entry("b"), third]);
    expect(namesOf(queue.take())).toEqual(["a", "b"]);
    expect(queue.hasWork).toBe(false);
    queue.done(first);
    expect(queue.take()).toEqual([second]);
    queue.done(second);
    expect(queue.take()).toEqual([third]);
  });

  test("holds either writes with keys or writes without", () => {
    const queue = filled([entry("a"), entry("b", { keyed: true }), entry("c", { keyed: true }), entry("d")]);
    expect([namesOf(queue.take()), namesOf(queue.take()), namesOf(queue.take())]).toEqual([["a"], ["b", "c"], ["d"]]);
  });

  test("is a single write when it has to go again, and the later writes of its resource stay behind it", () => {
    const [first, second] = [entry("a"), entry("a")];
    const queue = filled([first, second, entry("b"), entry("c")], { maxBatchRows: 1 });
    expect(queue.take()).toEqual([first]);
    queue.again(first, "alone");
    expect(queue.take()).toEqual([first]);
    expect(namesOf(queue.take())).toEqual(["b"]);
    queue.done(first);
    expect(namesOf(queue.take())).toEqual(["c"]);
    expect(queue.take()).toEqual([second]);
  });

  test("leaves out resources that were slow, until one of their writes has passed", () => {
    const slowRows = new SlowRows();
    const queue = new WriteQueue(limits, slowRows);
    slowRows.mark("b");
    for (const name of ["a", "b", "c"]) queue.add(entry(name));
    expect(queue.takeSlow()?.request.resource).toBe("b");
    expect([queue.takeSlow(), namesOf(queue.take())]).toEqual([undefined, ["a", "c"]]);
    slowRows.passed("b");
    const again = filled(["a", "b", "c"].map((name) => entry(name)));
    expect(namesOf(again.take())).toEqual(["a", "b", "c"]);
  });

  test("leaves out writes that were answered while they waited, and the next of their resource takes their turn", () => {
    const [first, second, third, other] = [entry("a"), entry("a"), entry("a"), entry("b")];
    const queue = filled([first, second, third, other]);
    queue.done(second);
    queue.done(first);
    queue.done(other);
    expect(queue.take()).toEqual([third]);
    expect(queue.hasWork).toBe(false);
    queue.done(third);
    queue.add(entry("a"));
    expect(namesOf(queue.take())).toEqual(["a"]);
  });
});

test("whatever comes in whatever order, every write is sent exactly once and each resource keeps its order", () => {
  const step = fc.oneof(
    fc.record({ add: fc.constantFrom("a", "b", "c", "d", "e", "f"), keyed: fc.boolean() }),
    fc.constantFrom("take", "done", "again", "overdue"),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const queue = new WriteQueue(limits, new SlowRows());
      const added: Entry[] = [];
      const finished: Entry[] = [];
      let inFlight: Entry[] = [];
      const take = () => {
        const batch = queue.take();
        expect(new Set(namesOf([...batch, ...inFlight])).size).toBe(batch.length + inFlight.length);
        inFlight = [...inFlight, ...batch];
      };
      const done = () => {
        const one = inFlight.shift();
        if (one === undefined) return;
        queue.done(one);
        finished.push(one);
      };
      for (const one of steps) {
        if (typeof one === "object") {
          const next = entry(one.add, { keyed: one.keyed });
          queue.add(next);
          added.push(next);
        } else if (one === "overdue") {
          const waiting = added.findIndex((each) => !inFlight.includes(each) && !finished.includes(each));
          for (const each of waiting < 0 ? [] : added.splice(waiting, 1)) queue.done(each);
        } else if (one === "take") take();
        else if (one === "done") done();
        else {
          const back = inFlight.shift();
          if (back !== undefined) queue.again(back, "alone");
        }
      }
      while (finished.length < added.length) {
        take();
        done();
      }
      expect(new Set(finished)).toEqual(new Set(added));
      expect(finished).toHaveLength(added.length);
      for (const name of ["a", "b", "c", "d", "e", "f"]) {
        const ofName = (list: readonly Entry[]) => list.filter(({ request }) => request.resource === name);
        expect(ofName(finished)).toEqual(ofName(added));
      }
    }),
  );
});

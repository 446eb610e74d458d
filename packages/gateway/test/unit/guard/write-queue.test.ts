// Which writes go into one batch, in which order, and how much may wait. Needs no server.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Entry, WriteQueue } from "../../../src/guard/write-queue.js";

const limits = { maxBatchRows: 4, maxBatchBytes: 100, maxQueuedWrites: 1_000, maxQueuedBytes: 100_000 };

function entry(resource: string, rest: { readonly value?: string; readonly keyed?: boolean } = {}): Entry {
  const { value = "1", keyed = false } = rest;
  const request = { op: "put", resource, token: 1, value, ...(keyed ? { idempotency: { key: "k", fingerprint: "f" } } : {}) } as const;
  return { request, verified: true, known: false, acceptedAt: 0, settle: () => {}, attempts: 0 };
}

function filled(entries: readonly Entry[], change: Partial<typeof limits> = {}): WriteQueue {
  const queue = new WriteQueue({ ...limits, ...change });
  for (const one of entries) expect(queue.add(one)).toBe("queued");
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
    queue.retryAlone(first);
    expect(queue.take()).toEqual([first]);
    expect(namesOf(queue.take())).toEqual(["b"]);
    queue.done(first);
    expect(namesOf(queue.take())).toEqual(["c"]);
    expect(queue.take()).toEqual([second]);
  });

  test("leaves out resources that were slow, until one of their writes has passed", () => {
    const queue = filled([]);
    queue.markSlow("b");
    for (const name of ["a", "b", "c"]) queue.add(entry(name));
    expect([namesOf(queue.take()), namesOf(queue.take())]).toEqual([["b"], ["a", "c"]]);
    queue.markPassed("b");
    const again = filled(["a", "b", "c"].map((name) => entry(name)));
    expect(namesOf(again.take())).toEqual(["a", "b", "c"]);
  });
});

test("the queue is bounded in writes and bytes, counts what is in flight, and always takes one", () => {
  const huge = entry("a", { value: "x".repeat(500) });
  const queue = filled([huge], { maxQueuedWrites: 3, maxQueuedBytes: 10 });
  expect(queue.add(entry("b"))).toBe("full");
  queue.take();
  expect(queue.add(entry("b"))).toBe("full");
  queue.done(huge);
  expect([queue.writes, queue.bytes]).toEqual([0, 0]);
  for (const name of ["a", "a", "b"]) expect(queue.add(entry(name))).toBe("queued");
  expect(queue.add(entry("c"))).toBe("full");
});

test("whatever comes in whatever order, every write is sent exactly once and each resource keeps its order", () => {
  const step = fc.oneof(
    fc.record({ add: fc.constantFrom("a", "b", "c", "d", "e", "f"), keyed: fc.boolean() }),
    fc.constantFrom("take", "done", "again"),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const queue = new WriteQueue(limits);
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
          if (queue.add(next) === "queued") added.push(next);
        } else if (one === "take") take();
        else if (one === "done") done();
        else {
          const back = inFlight.shift();
          if (back !== undefined) queue.retryAlone(back);
        }
      }
      while (queue.writes > 0) {
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

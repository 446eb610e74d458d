// Which questions travel together, and what becomes of those that meet a server without the script, or one
// that says nothing: orders of events that a real server produces only with bad luck.
import { describe, expect, test } from "vitest";
import { type AnyVerb, keysOf, type Ownership, type Verb, verbs } from "../../../src/protocol/verbs.js";
import { BatchEncoder, endOfBatch, type Request } from "../../../src/redis/calls.js";
import { PendingReleases, Pipeline } from "../../../src/redis/pipeline.js";
import { ManualClock } from "../scripted-node.js";

interface Call {
  readonly name: string;
  answer(reply: unknown): void;
  fail(message: string): void;
}

/** A server that answers when the test tells it to. */
function scripted() {
  const calls: Call[] = [];
  const lessons: (() => void)[] = [];
  const clock = new ManualClock();
  const pipeline = new Pipeline({
    node: {
      name: "n1",
      confirmedAdmission: undefined,
      noteAdmission: () => ({ epoch: "", generation: "" }),
      quarantined: () => ({ kind: "quarantined", node: "n1" }),
    },
    encoder: new BatchEncoder(keysOf("ns", "inbox")),
    clock,
    nodeTimeoutMs: 100,
    pendingReleases: new PendingReleases(1_000, () => {}),
    votingIn: { generation: "" },
    stream: {
      isUp: true,
      cause: "",
      send: ({ script }) =>
        new Promise((resolve, reject) => calls.push({ name: script, answer: resolve, fail: (message) => reject(new Error(message)) })),
      teachAgain: () => new Promise((resolve) => lessons.push(resolve)),
      breakOff: () => {},
    },
  });
  return { pipeline, clock, calls, lessons, sent: () => calls.map(({ name }) => name) };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const question = { resources: ["r"], owner: "o", label: "l", ttlMs: 1_000, tells: false };

describe("a server that forgot the scripts", () => {
  test("is taught again although there is always a call behind the one that failed", async () => {
    const { pipeline, calls, lessons } = scripted();
    const first = pipeline.ask(verbs.grant as AnyVerb, question);
    await turn();
    const another = { ...question, owner: "other" };
    void pipeline.ask(verbs.grant as AnyVerb, another);
    await turn();
    calls[0]?.fail("NOSCRIPT No matching script.");
    await turn();
    expect(lessons).toHaveLength(1);
    lessons[0]?.();
    await turn();
    expect(calls).toHaveLength(2);
    expect(await first).toMatchObject({ kind: "unreachable" });
  });

  test("is asked for a grant again", async () => {
    const { pipeline, calls, lessons } = scripted();
    const granted = pipeline.ask(verbs.grant as AnyVerb, question);
    await turn();
    calls[0]?.fail("NOSCRIPT No matching script.");
    await turn();
    lessons[0]?.();
    await turn();
    calls[1]?.answer(7);
    expect(await granted).toMatchObject({ kind: "granted", token: 7 });
  });

  test("is not asked for a grant again that was given back meanwhile, even if that was answered already", async () => {
    const { pipeline, calls, lessons, sent } = scripted();
    const granted = pipeline.ask(verbs.grant as AnyVerb, question);
    await turn();
    calls[0]?.fail("NOSCRIPT No matching script.");
    await turn();
    const released = pipeline.ask(verbs.release as AnyVerb, question);
    await turn();
    calls[1]?.answer(0);
    expect(await released).toMatchObject({ kind: "absent" });
    lessons[0]?.();
    await turn();
    expect(sent()).toEqual(["grant", "release"]);
    expect(await granted).toMatchObject({ kind: "unreachable" });
  });
});

test("a release that is sent to a node that has gone silent is unreachable after nodeTimeoutMs, like any other question", async () => {
  const { pipeline, clock, sent } = scripted();
  const granted = pipeline.ask(verbs.grant as AnyVerb, question);
  await turn();
  clock.advance(102);
  expect(await granted).toMatchObject({ kind: "unreachable" });
  clock.advance(50);
  let answer: unknown;
  void pipeline.ask(verbs.release as AnyVerb, question).then((ballot) => {
    answer = ballot;
  });
  await turn();
  expect(sent()).toEqual(["grant", "release"]);
  clock.advance(103);
  await turn();
  expect(answer).toMatchObject({ kind: "unreachable" });
});

// Which questions of a queue travel in one call.
describe("a run", () => {
  const lengths = (...asked: readonly [Verb, Partial<typeof question>, number?][]): readonly number[] => {
    const queue = asked.flatMap(([verb, other, count = 1]) =>
      Array.from({ length: count }, (): Request => ({ verb: verbs[verb] as AnyVerb, question: { ...question, ...other } })),
    );
    const ends = [];
    for (let at = 0; at < queue.length; at = endOfBatch(queue, at)) ends.push(endOfBatch(queue, at) - at);
    return ends;
  };
  const many = (count: number) => ({ resources: Array.from({ length: count }, (_, index) => `r${index}`) });

  test("L2 ends where the script, the number of resources or the ttl changes", () => {
    expect(lengths(["grant", {}, 2], ["release", {}], ["grant", {}])).toEqual([2, 1, 1]);
    expect(lengths(["grant", {}], ["grant", many(2), 2])).toEqual([1, 2]);
    expect(lengths(["grant", {}], ["grant", { ttlMs: 8 }, 2])).toEqual([1, 2]);
    expect(lengths(["release", {}], ["release", { ttlMs: 8 }])).toEqual([2]);
  });

  test("has 256 requests at most, and 1024 resources, or one request", () => {
    expect(lengths(["grant", {}, 300])).toEqual([256, 44]);
    expect(lengths(["grant", many(128), 9])).toEqual([8, 1]);
    expect(lengths(["grant", many(2_000), 2])).toEqual([1, 1]);
  });
});

// Releases that are owed: kept until the node is back, never more than 10 000.
const debt = (owner: string): Request => {
  const question: Ownership = { resources: ["a"], owner };
  return { verb: verbs.release as AnyVerb, question };
};
const ownersOf = (kept: readonly Request[]) => kept.map(({ question }) => (question as Ownership).owner);

describe("pending releases", () => {
  test("L2 are handed out once, in order, however long the node was away", () => {
    const pendingReleases = new PendingReleases(100, () => expect.unreachable());
    pendingReleases.add(debt("first"), 0);
    pendingReleases.add(debt("second"), 50);
    pendingReleases.add(debt("third"), 5_000);
    expect(ownersOf(pendingReleases.take(2))).toEqual(["first", "second"]);
    expect(ownersOf(pendingReleases.take())).toEqual(["third"]);
    expect(pendingReleases.take()).toEqual([]);
    expect(pendingReleases.size).toBe(0);
  });

  test("beyond 10 000 are given up, the newest first, and it is said how many", () => {
    const dropped: number[] = [];
    const pendingReleases = new PendingReleases(100, (count) => dropped.push(count));
    for (let index = 0; index < 10_003; index++) pendingReleases.add(debt(String(index)), 0);
    expect(pendingReleases.size).toBe(10_000);
    expect(ownersOf(pendingReleases.take()).at(-1)).toBe("9999");
    expect(dropped).toEqual([3]);
    expect(pendingReleases.take()).toEqual([]);
    expect(dropped).toEqual([3]);
  });

  test("make room for new ones once their keys should have run out", () => {
    const pendingReleases = new PendingReleases(100, () => expect.unreachable());
    for (let index = 0; index < 10_000; index++) pendingReleases.add(debt(String(index)), index < 4_000 ? 0 : 90);
    pendingReleases.add(debt("late"), 100);
    expect(pendingReleases.size).toBe(6_001);
  });
});

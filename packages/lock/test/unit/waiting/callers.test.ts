// Waiting for a lock, in simulated time: in which order, woken by what, for how long, and what is left
// behind by callers that give up.
import { describe, expect } from "vitest";
import type { AttemptEvent } from "../../../src/protocol/events.js";
import { failure, listen } from "../../listening.js";
import { type Story, test } from "../../simulation/story.js";

/** What is told of attempts to take one resource, or several of which it is the first. */
const attemptsOn = (resource: string) => listen<AttemptEvent>("attempt", ({ resources }) => resources[0] === resource);

/** Puts another owner's key on these nodes. */
function plant(story: Story, resource: string, on: readonly number[], ttlMs = 60_000): void {
  for (const i of on) story.nodes[i]?.command("SET", `{sim}:lock:${resource}`, "stranger|somebody else", "PX", String(ttlMs));
}

const free = [null, null, null, null, null];

test("one process sends one contender: however many callers wait, the nodes are asked about as often as for one", async (story) => {
  const [holder, crowd] = [story.actor(), story.actor()];
  await holder.locker.acquire("crowded", { renew: true });
  using attempts = attemptsOn("crowded");
  const inFront = failure(crowd.locker.acquire("crowded", { waitMs: 2_000 }));
  await story.until(() => attempts.events.length > 0, "the one in front was refused");
  const behind = Array.from({ length: 200 }, () => failure(crowd.locker.acquire("crowded", { waitMs: 500 })));
  for (const error of await Promise.all([inFront, ...behind])) expect(error).toMatchObject({ code: "LOCK_HELD" });
  expect(attempts.events.length).toBeLessThan(20);
});

test("W1 a caller that waits for one of several resources keeps none of the others from callers of its process, nor one whose name looks like their list", async (story) => {
  const [holder, { locker }] = [story.actor(), story.actor()];
  const lease = await holder.locker.acquire("b", { ttlMs: 60_000 });
  using attempts = attemptsOn("a");
  const both = locker.acquire(["a", "b"], { waitMs: 60_000 });
  await story.until(() => attempts.events.some(({ outcome }) => outcome === "held"), "b was found held");
  for (let i = 0; i < 3; i++) await (await locker.acquire("a", { waitMs: 5_000 })).release();
  await (await locker.acquire("a\nb", { waitMs: 2_000 })).release();
  expect(await failure(locker.acquire("b", { waitMs: 0 }))).toMatchObject({ code: "LOCK_HELD", resource: "b" });
  await lease.release();
  expect((await both).resources).toEqual(["a", "b"]);
});

test(
  "W1 a waiter costs each node less than a command a second while a quorum would notify it",
  async (story) => {
    const holder = story.actor();
    const lease = await holder.locker.acquire("idle", { ttlMs: 60_000 });
    const waiting = Array.from({ length: 12 }, () => story.actor().locker.acquire("idle", { waitMs: 60_000 }));
    await story.untilQueued("idle", 12);
    await story.pass(1_000);
    const calls = () => story.nodes.reduce((sum, node) => sum + node.calls, 0);
    const before = calls();
    await story.pass(20_000);
    expect((calls() - before) / 20 / 12 / 3).toBeLessThan(0.5);
    void lease.release();
    await Promise.all(waiting.map((next) => next.then((held) => held.release())));
  },
  { nodes: 3 },
);

test(
  "W1 a waiter whose subscriptions are lost polls again",
  async (story) => {
    const lease = await story.actor().locker.acquire("r", { ttlMs: 60_000 });
    using attempts = attemptsOn("r");
    const waiting = story.actor().locker.acquire("r", { waitMs: 60_000 });
    await story.untilQueued("r", 1);
    await story.pass(200);
    for (const node of story.nodes) node.server.deafen();
    await story.pass(100);
    const before = attempts.events.length;
    await story.pass(3_000);
    expect(attempts.events.length).toBeGreaterThanOrEqual(before + 4);
    void lease.release();
    await waiting;
  },
  { nodes: 3 },
);

test("a lock whose holder vanished is taken over when its time is over, without a message", async (story) => {
  const waiter = story.actor({ retry: { maxDelayMs: 60_000 } });
  await waiter.locker.ready();
  const holder = story.actor();
  await holder.locker.acquire("r", { ttlMs: 1_000 });
  holder.kill();
  expect((await story.timed(waiter.locker.acquire("r", { waitMs: 20_000 }))).tookMs).toBeLessThan(1_500);
});

test("waiting ends with waitMs, says who holds it, and leaves nothing on any node", async (story) => {
  const lease = await story.actor({ label: "worker-7" }).locker.acquire("r", { ttlMs: 60_000 });
  const waiter = story.actor({ retry: { minDelayMs: 60_000, maxDelayMs: 60_000 } });
  await waiter.locker.ready();
  const { tookMs, result } = await story.timed(failure(waiter.locker.acquire("r", { waitMs: 120 })));
  expect(result).toMatchObject({ code: "LOCK_HELD", message: expect.stringContaining("worker-7") });
  expect(tookMs).toBeGreaterThanOrEqual(119);
  expect(tookMs).toBeLessThan(125);
  await lease.release();
  await story.eventually(() => expect(story.stored("lock", "r")).toEqual(free));
});

test(
  "a caller that never had its turn is told what the one in front learnt: held, or no quorum",
  async (story) => {
    const { locker } = story.actor();
    await locker.ready();
    /** What two callers are told that give up after an attempt of the one in front. */
    const bothGiveUp = async (resource: string) => {
      using attempts = attemptsOn(resource);
      const quitting = new AbortController();
      const inFront = failure(locker.acquire(resource, { waitMs: 60_000, signal: quitting.signal }));
      await story.until(() => attempts.events.length > 0, "the one in front has learnt something");
      const behind = await failure(locker.acquire(resource, { waitMs: 50 }));
      quitting.abort();
      expect(await inFront).toMatchObject({ code: "LOCK_ABORTED" });
      return behind;
    };
    plant(story, "held", [0, 1, 2]);
    expect(await bothGiveUp("held")).toMatchObject({
      code: "LOCK_HELD",
      message: expect.stringMatching(/^no turn for held within waitMs: 1 of this process was in front; .*somebody else/),
    });
    story.nodes[0]?.kill();
    story.nodes[1]?.kill();
    expect(await bothGiveUp("silent")).toMatchObject({ code: "LOCK_NO_QUORUM" });
    expect(await failure(locker.acquire("silent", { waitMs: 100 }))).toMatchObject({ code: "LOCK_NO_QUORUM" });
  },
  { nodes: 3 },
);

test("the number of tries can be limited", async (story) => {
  const { locker } = story.actor({ retry: { tries: 1 } });
  await locker.ready();
  plant(story, "once", [0, 1, 2, 3, 4]);
  using attempts = attemptsOn("once");
  expect(await failure(locker.acquire("once", { waitMs: 60_000 }))).toMatchObject({ code: "LOCK_HELD" });
  await story.pass(1_000);
  expect(attempts.events).toHaveLength(1);
});

test("W1 the tries that are limited are questions to the nodes: before the third a caller waits for its turn", async (story) => {
  const [holder, { locker }] = [story.actor(), story.actor({ retry: { tries: 3 } })];
  const lease = await holder.locker.acquire("r", { ttlMs: 60_000 });
  using attempts = attemptsOn("r");
  const waiting = locker.acquire("r", { waitMs: 20_000 });
  await story.untilQueued("r", 1);
  await story.pass(10_000);
  void lease.release();
  await waiting;
  expect(attempts.events).toHaveLength(3);
});

describe("giving up", () => {
  test("by signal rejects with LOCK_ABORTED and its reason, leaves nothing on any node, and delays no caller behind it", async (story) => {
    const [holder, { locker }] = [story.actor(), story.actor()];
    const lease = await holder.locker.acquire("r", { renew: true });
    const aborter = new AbortController();
    const quitters = [1, 2].map(() => failure(locker.acquire("r", { signal: aborter.signal, waitMs: 60_000 })));
    const patient = locker.acquire("r", { waitMs: 60_000 });
    await story.pass(20);
    aborter.abort("enough");
    const [inFront, behind] = await Promise.all(quitters);
    const message = expect.stringMatching(/^the caller gave up after waiting \d+ ms for r$/);
    expect(inFront).toMatchObject({ code: "LOCK_ABORTED", cause: "enough", resource: "r", message });
    expect(behind).toMatchObject({ code: "LOCK_ABORTED", cause: "enough" });
    await lease.release();
    await (await patient).release();
    await story.eventually(() => expect(story.stored("lock", "r")).toEqual(free));
  });

  test("before it began asks no node", async (story) => {
    const error = await failure(story.actor().locker.acquire("r", { signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: "LOCK_ABORTED" });
    await story.pass(1_000);
    expect(story.stored("token", "r")).toEqual(free);
  });
});

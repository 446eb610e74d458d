// The queue of the processes that wait for one lock, in simulated time: in which order they have
// it, and what becomes of the others when the first one dies, stands still or gives up, or when
// tickets are lost. Polls would come after the test's time, except where they are what is tested.
import { expect } from "vitest";
import type { RoundEvent } from "../../../src/protocol/events.js";
import type { Lease } from "../../../src/protocol/locker.js";
import { listen } from "../../listening.js";
import { type Actor, type Story, test } from "../../simulation/story.js";

const retry = { minDelayMs: 20_000, maxDelayMs: 60_000 };
const SOON_MS = 200;
/** And the look after it. */
const RESERVATION_MS = 60;
const patient = { waitMs: 50_000 };

/** A lease of "r" that others wait for. */
async function held(story: Story): Promise<Lease> {
  return await story.actor().locker.acquire("r", { renew: true });
}

/** Why it was not granted. */
const failure = (work: Promise<unknown>): Promise<unknown> => work.then(() => new Error("it was granted"), String);

test("W1 sixteen processes that wait have the lock in the order in which they began", async (story) => {
  const lease = await held(story);
  const order: number[] = [];
  const waiting: Promise<void>[] = [];
  for (let i = 0; i < 16; i++) {
    waiting.push(story.actor({ retry }).locker.using("r", patient, () => void order.push(i)));
    await story.untilQueued("r", i + 1);
  }
  void lease.release();
  await Promise.all(waiting);
  expect(order).toEqual(Array.from({ length: 16 }, (_, i) => i));
});

test("W1 a process that takes the lock again and again stands behind those that wait, each time", async (story) => {
  const order: number[] = [];
  const loop = async ({ locker, process }: Actor, me: number): Promise<void> => {
    for (let i = 0; i < 25; i++) {
      await locker.using("r", patient, async () => {
        order.push(me);
        await new Promise<void>((resolve) => process.setTimer(2, resolve));
      });
    }
  };
  await Promise.all([0, 1, 2, 3].map((me) => loop(story.actor(), me)));
  const gaps = [0, 1, 2, 3].flatMap((me) => {
    const places = order.slice(30).flatMap((each, place) => (each === me ? [place] : []));
    return places.map((place, i) => place - (places[i - 1] ?? -1) - 1);
  });
  expect(Math.max(...gaps)).toBeLessThanOrEqual(12);
});

test("W1 a hand-over among many costs each node four calls: the refused grant, the refused claim, the release, the claim", async (story) => {
  const had = (
    await sharing(
      story,
      Array.from({ length: 6 }, () => ["r"]),
      1_000,
    )
  ).reduce((sum, each) => sum + each, 0);
  for (const node of story.nodes) expect(node.calls / had).toBeLessThan(4.3);
});

/** Callers of one process that take it in turns; `entered` hears of each. */
async function inOneProcess(story: Story, { locker, process }: Actor, entered: () => void): Promise<void> {
  const endsAt = story.nowMs + 1_000;
  const callers = Array.from({ length: 8 }, async () => {
    while (story.nowMs < endsAt) {
      await locker.using("r", patient, async () => {
        entered();
        await new Promise<void>((resolve) => process.setTimer(2, resolve));
      });
    }
  });
  await Promise.all(callers);
}

test("W1 a lock that stays in its process costs each node two calls for each lease: the claim of the next, the release", async (story) => {
  const actor = story.actor({ retry });
  let had = 0;
  await inOneProcess(story, actor, () => had++);
  expect(had).toBeGreaterThan(100);
  for (const node of story.nodes) expect(node.calls / had).toBeLessThan(2.2);
});

test("W1 a lock stays in its process only for the caller that began before those of others", async (story) => {
  const lease = await held(story);
  const order: string[] = [];
  const [own, other] = [story.actor({ retry }), story.actor({ retry })];
  const mine = inOneProcess(story, own, () => void order.push("mine"));
  await story.untilQueued("r", 1);
  const others = inOneProcess(story, other, () => void order.push("other"));
  await story.untilQueued("r", 2);
  void lease.release();
  await Promise.all([mine, others]);
  // At the end one of the two wants it no more.
  const first = order.slice(0, order.length / 2);
  expect(first.length).toBeGreaterThan(50);
  expect(first).toEqual(first.map((_, i) => (i % 2 === 0 ? "mine" : "other")));
});

test("W1 who stands by for a lease of its own process learns who holds it when its time ends, and has it soon when that is removed by force", async (story) => {
  const { locker } = story.actor({ retry, label: "worker-7" });
  // From the first wait on it listens.
  await Promise.all([1, 2].map(() => locker.using("r", () => story.pass(50))));
  const holder = locker.acquire("r", { ...patient, ttlMs: 60_000 });
  const [standingBy, behind] = [80, 60].map((waitMs) => locker.acquire("r", { waitMs }).catch((error) => error));
  await holder;
  expect(await behind).toMatchObject({ code: "LOCK_HELD", message: expect.stringContaining("one of which held it") });
  expect(story.queued("r")).toEqual([0, 0, 0, 0, 0]);
  expect(await standingBy).toMatchObject({ code: "LOCK_HELD", message: expect.stringContaining("worker-7") });
  const [removed, next] = ["s", "s"].map((name) => locker.acquire(name, { ...patient, ttlMs: 40_000 }));
  const { token } = (await removed) as Lease;
  await story.actor().locker.fleet.forceRelease("s", { reason: "a test", token });
  expect((await story.timed(next as Promise<Lease>)).tookMs).toBeLessThan(SOON_MS);
});

for (const end of ["is killed", "stands still"])
  test(`W1 the first one in the queue ${end}: the next one has the lock soon`, async (story) => {
    const { lease, next, first } = await twoBehind(story);
    if (end === "is killed") first.kill();
    else first.process.stop();
    void lease.release();
    expect((await story.timed(next)).tookMs).toBeLessThan(SOON_MS);
  });

/** One holds, two wait. */
async function twoBehind(story: Story) {
  const lease = await held(story);
  const [first, second] = [story.actor({ retry }), story.actor({ retry })];
  const aborter = new AbortController();
  const quitter = failure(first.locker.acquire("r", { ...patient, signal: aborter.signal }));
  await story.untilQueued("r", 1);
  const next = second.locker.acquire("r", patient);
  await story.untilQueued("r", 2);
  return { lease, first, next, aborter, quitter };
}

test("W1 who comes next behind one that stands still has the lock when one reservation is over", async (story) => {
  const [{ locker }, first] = [story.actor({ retry }), story.actor({ retry })];
  // From its first wait on it is told.
  await Promise.all([1, 2].map(() => locker.using("r", () => story.pass(50))));
  const lease = await locker.acquire("r");
  void first.locker.acquire("r", patient);
  await story.untilQueued("r", 1);
  first.process.stop();
  await lease.release();
  expect((await story.timed(locker.acquire("r", patient))).tookMs).toBeLessThan(80);
});

for (const stopped of [2, 3, 20])
  test(`W1 ${stopped} at the front of the queue stand still: they cost a few reservations, and who goes on has its place again`, async (story) => {
    const lease = await held(story);
    const still: Actor[] = [];
    let hasGoneOn = false;
    for (let i = 0; i < stopped; i++) {
      const actor = story.actor({ retry });
      void actor.locker.acquire("r", patient).then(() => (hasGoneOn = true));
      still.push(actor);
      await story.untilQueued("r", i + 1);
    }
    const waiting = [1, 2, 3].map(() => story.actor({ retry }).locker.acquire("r", { ...patient, renew: true }));
    await story.untilQueued("r", stopped + 3);
    for (const { process } of still) process.stop();
    void lease.release();
    const { tookMs, result: taken } = await story.timed(Promise.race(waiting));
    expect(tookMs).toBeLessThan((2 + Math.log2(stopped)) * RESERVATION_MS);
    await story.untilQueued("r", 2);
    still.at(-1)?.process.continue();
    await story.untilQueued("r", 3);
    const beganMs = story.nowMs;
    void taken.release();
    await story.until(() => hasGoneOn, "the one that goes on has it");
    expect(story.nowMs - beganMs).toBeLessThan(SOON_MS);
  });

test("W1 a lock whose holder's time is over goes to the first in the queue, each time", async (story) => {
  const order: number[] = [];
  const actors = Array.from({ length: 6 }, () => story.actor({ retry }));
  const holder = story.actor();
  await holder.locker.acquire("r", { ttlMs: 1_000 });
  holder.kill();
  for (const [i, { locker }] of actors.entries()) {
    void locker.acquire("r", { ...patient, ttlMs: 1_000 }).then(() => order.push(i));
    await story.untilQueued("r", i + 1);
  }
  await story.until(() => order.length === 6, "all had it");
  expect(order).toEqual([0, 1, 2, 3, 4, 5]);
});

test("W1 who takes a lock in the moment in which it ran out hands it to those that wait", async (story) => {
  const holder = story.actor();
  await holder.locker.acquire("r", { ttlMs: 1_000 });
  holder.kill();
  const [waiter, passer] = [story.actor({ retry }), story.actor().locker];
  const waiting = waiter.locker.acquire("r", patient);
  await story.untilQueued("r", 1);
  for (const { name } of story.nodes) waiter.hold(name);
  let taken: Lease | undefined;
  await story.until(async () => {
    const attempt = await passer.tryAcquire("r");
    if (attempt.ok) taken = attempt.lease;
    return attempt.ok;
  }, "it ran out");
  await taken?.release();
  expect((await passer.tryAcquire("r")).ok).toBe(false);
  waiter.deliver();
  await waiting;
});

/** Callers that take these again and again, each from a process of its own: how often each had them. */
async function sharing(story: Story, wanted: readonly (readonly string[])[], forMs: number, holdMs = 2): Promise<readonly number[]> {
  const endsAt = story.nowMs + forMs;
  const loops = wanted.map(async (resources) => {
    const { locker, process } = story.actor();
    let had = 0;
    while (story.nowMs < endsAt) {
      await locker.using(resources, patient, () => new Promise<void>((resolve) => process.setTimer(holdMs, resolve)));
      had++;
    }
    return had;
  });
  return Promise.all(loops);
}

for (const holdMs of [5, 100])
  test(`W1 a caller of several resources has them as often as those of each: held for ${holdMs} ms`, async (story) => {
    const [set = 0, ...singles] = await sharing(story, [["a", "b"], ["a"], ["a"], ["b"], ["b"]], 300 + 100 * holdMs, holdMs);
    expect(set).toBeGreaterThan(0.8 * (singles.reduce((sum, had) => sum + had, 0) / 4));
  });

test("W1 a resource is not kept for a caller of several in vain: others go on having it", async (story) => {
  const alone = (await sharing(story, [["a"], ["a"]], 1_000, 10)).reduce((sum, had) => sum + had, 0);
  const leader = await story.actor().locker.acquire("b", { renew: true });
  const both = failure(story.actor().locker.acquire(["a", "b"], { waitMs: 1_000 }));
  const beside = (await sharing(story, [["a"], ["a"]], 1_000, 10)).reduce((sum, had) => sum + had, 0);
  expect(beside).toBeGreaterThan(0.5 * alone);
  await both;
  await leader.release();
});

test("W1 the first one in the queue gives up: the next one has the lock soon, and nothing is kept for who left", async (story) => {
  const { lease, next, aborter, quitter } = await twoBehind(story);
  aborter.abort();
  await quitter;
  await story.untilQueued("r", 1);
  void lease.release();
  expect((await story.timed(next)).tookMs).toBeLessThan(SOON_MS);
});

test("W1 a caller that gives up leaves the place of its process to the next one that waits there", async (story) => {
  const lease = await held(story);
  const [first, second] = [story.actor({ retry }), story.actor({ retry })];
  const aborters = [new AbortController(), new AbortController()];
  const order: string[] = [];
  const quitters = aborters.map(({ signal }) => failure(first.locker.acquire("r", { ...patient, signal })));
  await story.untilQueued("r", 1);
  const waiting = [first, second].map(({ locker }, i) => locker.using("r", patient, () => void order.push(["first", "second"][i] ?? "")));
  await story.untilQueued("r", 2);
  for (const [i, aborter] of aborters.entries()) {
    aborter.abort();
    (await quitters[i]) as Promise<unknown>;
    await story.pass(100);
  }
  void lease.release();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
});

test("W1 callers of one process that give up together leave no ticket", async (story) => {
  await story.actor().locker.acquire("r", { renew: true });
  const [aborter, { locker }] = [new AbortController(), story.actor({ retry })];
  const quitters = [1, 2, 3].map(() => failure(locker.acquire("r", { ...patient, signal: aborter.signal })));
  await story.untilQueued("r", 1);
  aborter.abort();
  await Promise.all(quitters);
  await story.untilQueued("r", 0);
});

/** "r" and "s" are held; the first process has a caller of both besides one of "r"; another waits. */
async function beside(story: Story, both: readonly string[]) {
  const holder = story.actor();
  const [r, s] = await Promise.all([holder.locker.acquire("r", { renew: true }), holder.locker.acquire("s", { renew: true })]);
  const [first, second, aborter] = [story.actor({ retry }), story.actor({ retry }), new AbortController()];
  const order: string[] = [];
  const other = failure(first.locker.acquire(both, { ...patient, signal: aborter.signal }));
  await story.untilQueued("r", 1);
  const waiting = [first.locker.using("r", patient, () => void order.push("first"))];
  await story.untilQueued("r", 2);
  waiting.push(second.locker.using("r", patient, () => void order.push("second")));
  await story.untilQueued("r", 3);
  const giveUp = async (): Promise<void> => {
    aborter.abort();
    await other;
  };
  return { r, s, order, giveUp, waiting };
}

test("W1 a caller of several resources that gives up leaves the other callers of its process their place", async (story) => {
  const { r, order, giveUp, waiting } = await beside(story, ["r", "s"]);
  await giveUp();
  await story.untilQueued("r", 2);
  void r.release();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
});

test("W1 a caller of several resources does not pass on what is kept for another caller of its process", async (story) => {
  const { r, order, waiting } = await beside(story, ["s", "r"]);
  void r.release();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
});

test("W1 of many callers that want other sets with one resource each has a ticket, and those that stay have their turn", async (story) => {
  const lease = await held(story);
  const [{ locker }, crowd] = [story.actor({ retry }), new AbortController()];
  const quitters = Array.from({ length: 64 }, (_, i) => failure(locker.acquire(["r", `x${i}`], { ...patient, signal: crowd.signal })));
  const others = Array.from({ length: 20 }, (_, i) => locker.using(["r", `y${i}`], patient, () => {}));
  await story.untilQueued("r", 84);
  crowd.abort();
  await Promise.all(quitters);
  void lease.release();
  await Promise.all(others);
});

test("W1 a release at the moment of a refusal, before there is a ticket, is not missed", async (story) => {
  const [holder, waiter] = [story.actor(), story.actor({ retry })];
  await waiter.locker.ready();
  for (let i = 0; i < 60; i++) {
    const lease = await holder.locker.acquire("r", { renew: true });
    const next = waiter.locker.acquire("r", patient);
    await story.pass(i * 0.05);
    void lease.release();
    const { tookMs, result } = await story.timed(next);
    expect(tookMs).toBeLessThan(SOON_MS);
    await result.release();
  }
});

test("W1 nodes that forgot every ticket delay a waiter by a look", async (story) => {
  const lease = await held(story);
  const waiting = story.actor().locker.acquire("r", patient);
  await story.untilQueued("r", 1);
  await story.pass(100);
  for (const { server } of story.nodes) server.memory.delete("{sim}:queue:r");
  void lease.release();
  expect((await story.timed(waiting)).tookMs).toBeLessThan(7_000);
});

test(
  "W1 with a minority of the nodes dead, a release is told by the others",
  async (story) => {
    const lease = await held(story);
    const waiting = story.actor({ retry }).locker.acquire("r", patient);
    await story.untilQueued("r", 1);
    await story.pass(100);
    story.nodes[1]?.kill();
    void lease.release();
    expect((await story.timed(waiting)).tookMs).toBeLessThan(SOON_MS);
  },
  { nodes: 3 },
);

test("W1 a release keeps the lock for the first in the queue, for a moment", async (story) => {
  const { lease, first, next } = await twoBehind(story);
  first.process.stop();
  void lease.release();
  const values = () => story.nodes.map(({ server }) => server.memory.get("{sim}:lock:r", server.wallMs()) ?? "");
  await story.until(() => values().filter((value) => value.startsWith("~")).length >= 3, "it is kept");
  await next;
});

test("W1 everybody can see how many wait for what", async (story) => {
  const [holder, operator] = [story.actor(), story.actor({ label: "operator" })];
  const lease = await holder.locker.acquire("r");
  const waiting: Promise<Lease>[] = [];
  for (const count of [1, 2, 3]) {
    waiting.push(story.actor().locker.acquire("r"));
    await story.untilQueued("r", count);
    expect(await operator.locker.inspect("r")).toMatchObject({ state: "held", token: lease.token, waiting: count });
  }
  using releases = listen<RoundEvent>("round", ({ question }) => question === "release");
  await lease.release();
  for (const turn of waiting) await (await turn).release();
  await story.until(() => releases.events.length >= 4, "all are told");
  const listeners = releases.events.map(({ ballots }) =>
    Math.max(...ballots.map((ballot) => (ballot.kind === "released" ? ballot.listeners : 0))),
  );
  expect(listeners).toEqual([3, 2, 1, 0]);
  expect(await operator.locker.inspect("r")).toMatchObject({ state: "free", waiting: 0 });
});

test("W1 a set that waits for two locks of one holder has both before one that began later", async (story) => {
  const held = await story.actor().locker.acquire(["r", "s"], { renew: true });
  const order: string[] = [];
  const waiting = [story.actor().locker.using(["r", "s"], patient, () => void order.push("both"))];
  await story.untilQueued("s", 1);
  waiting.push(story.actor().locker.using("s", patient, () => void order.push("one")));
  await story.untilQueued("s", 2);
  void held.release();
  await Promise.all(waiting);
  expect(order).toEqual(["both", "one"]);
});

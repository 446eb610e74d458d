// Waiting for a lock: in which order, woken by what, for how long, and what is left behind by
// callers that give up.
import { setTimeout as sleep } from "node:timers/promises";
import { type AttemptEvent, LockError, type Locker } from "@palisade/lock";
import { Redis } from "ioredis";
import { describe, expect, failure, listen, test, timed, until } from "./lock-test.js";

/** What is told of attempts to take one resource. */
const attemptsOn = (resource: string) => listen<AttemptEvent>("attempt", ({ resources }) => resources[0] === resource);

test("callers in one process get the lock in the order in which they asked", async ({ locker }) => {
  const first = await locker.acquire("r");
  const order: number[] = [];
  const waiting = Array.from({ length: 8 }, (_, i) => locker.using("r", () => void order.push(i)));
  await first.release();
  await Promise.all(waiting);
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test("one process sends one contender: however many callers wait, the nodes are asked about as often as for one", async ({ shared }) => {
  const holder = shared();
  const crowd = shared();
  const lease = await holder.acquire("crowded");
  await crowd.ready();
  using attempts = attemptsOn("crowded");
  const quitting = new AbortController();
  const inFront = failure(crowd.acquire("crowded", { waitMs: 60_000, signal: quitting.signal }));
  await until(() => attempts.events.some(({ outcome }) => outcome === "held"), "the one in front was refused");
  const waiting = Array.from({ length: 200 }, () => crowd.acquire("crowded", { waitMs: 500 }).catch((error: unknown) => error));
  const outcomes = await Promise.all(waiting);
  quitting.abort();
  await inFront;
  expect(attempts.events.length).toBeLessThan(50);
  expect(outcomes.every((outcome) => outcome instanceof LockError && outcome.code === "LOCK_HELD")).toBe(true);
  await lease.release();
});

test("W1 a caller that waits for one of several resources keeps none of the others from callers of its process", async ({ shared }) => {
  const holder = shared();
  const locker = shared();
  const lease = await holder.acquire("b", { ttlMs: 60_000 });
  using attempts = listen<AttemptEvent>("attempt", ({ resources }) => resources.length === 2);
  const both = locker.acquire(["a", "b"], { waitMs: 60_000 });
  await until(() => attempts.events.some(({ outcome }) => outcome === "held"), "b was found held");
  for (let i = 0; i < 3; i++) await (await locker.acquire("a", { waitMs: 5_000 })).release();
  const behind = failure(locker.acquire("b", { waitMs: 0 }));
  expect(await behind).toMatchObject({ code: "LOCK_HELD", resource: "b" });
  await lease.release();
  expect((await both).resources).toEqual(["a", "b"]);
});

test("W1 a caller of several resources keeps none from a resource whose name looks like their list", async ({ shared }) => {
  const [holder, locker] = [shared(), shared()];
  const lease = await holder.acquire("b", { ttlMs: 60_000 });
  using attempts = listen<AttemptEvent>("attempt", ({ resources }) => resources.length === 2);
  const both = locker.acquire(["a", "b"], { waitMs: 60_000 });
  await until(() => attempts.events.some(({ outcome }) => outcome === "held"), "b was found held");
  await (await locker.acquire("a\nb", { waitMs: 2_000 })).release();
  await lease.release();
  expect((await both).resources).toEqual(["a", "b"]);
});

test("W1 callers of overlapping sets of resources all finish, in whichever order they name them", async ({ shared }) => {
  const lockers = [0, 1].map(() => shared({ waitMs: 60_000 }));
  const sets = [["a", "b"], ["b", "a"], ["b", "c"], ["c", "a"], ["a"], ["b"]];
  const holders = new Map<string, number>();
  let finished = 0;
  const work = lockers.flatMap((locker) =>
    sets.map(async (resources) => {
      for (let i = 0; i < 4; i++) {
        await locker.using(resources, ({ token }) => {
          for (const resource of resources) {
            expect(holders.get(resource) ?? 0).toBeLessThan(token);
            holders.set(resource, token);
          }
        });
        finished++;
      }
    }),
  );
  await Promise.all(work);
  expect(finished).toBe(48);
});

test("a lock released in one process is taken over in another, long before any poll", async ({ shared }) => {
  const lockers = [0, 1].map(() => shared({ retry: { minDelayMs: 20_000, maxDelayMs: 60_000 } })) as [Locker, Locker];
  let held = await lockers[0].acquire("r", { ttlMs: 60_000 });
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const next = lockers[i % 2 === 0 ? 1 : 0].acquire("r", { ttlMs: 60_000, waitMs: 25_000 });
    await sleep(5);
    const { tookMs, result } = await timed(async () => {
      void held.release();
      return next;
    });
    times.push(tookMs);
    held = result;
  }
  times.sort((a, b) => a - b);
  // The shortest delay that is not ended by news is a tenth of minDelayMs.
  expect(times[10]).toBeLessThan(1_800);
});

/** Commands that all nodes have executed, those of scripts included. */
async function commandsOf(nodes: readonly { cli(...words: string[]): Promise<unknown> }[]): Promise<number> {
  const stats = await Promise.all(nodes.map((node) => node.cli("INFO", "commandstats")));
  return [...stats.join("").matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

test("W1 a waiter costs each node less than a command a second while a quorum would notify it", async ({ own, open }) => {
  const { running, nodes, locker } = await own(3);
  const lease = await locker.acquire("idle", { ttlMs: 60_000 });
  const waiters = 12;
  using attempts = attemptsOn("idle");
  const waiting = Array.from({ length: waiters }, () => open({ nodes: running.urls }).acquire("idle", { waitMs: 60_000 }));
  // One refusal, and one more when a quorum listens.
  await until(() => attempts.events.length >= 2 * waiters, "all wait", 20_000);
  await sleep(1_000);
  const [commands, startedAt] = [await commandsOf(nodes), performance.now()];
  await sleep(6_000);
  const perSecond = (await commandsOf(nodes)) - commands;
  const forS = (performance.now() - startedAt) / 1_000;
  expect(perSecond / forS / waiters / nodes.length).toBeLessThan(1);
  await lease.release();
  for (const next of waiting) void next.then((held) => held.release());
  await Promise.all(waiting);
});

test("W1 a waiter whose subscriptions are lost polls again", async ({ own, open }) => {
  const { running, nodes, locker } = await own(3);
  const lease = await locker.acquire("r", { ttlMs: 60_000 });
  using attempts = attemptsOn("r");
  const waiting = open({ nodes: running.urls }).acquire("r", { waitMs: 60_000 });
  await until(() => attempts.events.length >= 2, "it waits and is heard");
  for (const node of nodes) {
    await node.cli("ACL", "SETUSER", "default", "-subscribe");
    await node.cli("CLIENT", "KILL", "TYPE", "pubsub");
  }
  const before = attempts.events.length;
  await until(() => attempts.events.length >= before + 4, "it polls");
  await lease.release();
  await (await waiting).release();
});

test("W1 a waiter that is not notified of a release is not forgotten: the notified ones may do nothing", async ({ shared, redis, eye }) => {
  const [holder, waiter] = [shared(), shared()];
  const idlers = redis.urls.map((url) => new Redis(url));
  const { namespace } = redis;
  const seats = Array.from({ length: 16 }, (_, seat) => `{${namespace}}:seat:${seat}:r`);
  await Promise.all(idlers.map((idler) => idler.subscribe(`{${namespace}}:lock:r`, ...seats)));
  for (let i = 0; i < 4; i++) {
    const lease = await holder.acquire("r", { ttlMs: 60_000 });
    const waiting = waiter.acquire("r", { waitMs: 60_000 });
    // By a majority: on a slow machine the holder may have the others late, or not at all.
    await until(async () => (await eye.holders("r")).filter((value) => value?.endsWith("\n")).length >= 3, "it was refused");
    await sleep(50);
    await lease.release();
    const { tookMs, result } = await timed(() => waiting);
    expect(tookMs).toBeLessThan(5_000);
    await result.release();
  }
  for (const idler of idlers) idler.disconnect();
});

test("a lock whose holder vanished is taken over when its time is over, without a message", async ({ shared }) => {
  const waiter = shared({ retry: { maxDelayMs: 60_000 } });
  const holder = shared();
  await waiter.ready();
  // Nobody gives it back: its keys run out.
  await holder.acquire("r", { ttlMs: 1_000 });
  // The first poll would be in half a minute, and the last attempt at the end of waitMs.
  const { tookMs } = await timed(() => waiter.acquire("r", { waitMs: 20_000 }));
  expect(tookMs).toBeLessThan(15_000);
});

test("waiting ends with waitMs, says who holds it, and leaves nothing on any node", async ({ shared, eye }) => {
  const holder = shared({ label: "worker-7" });
  const waiter = shared({ retry: { minDelayMs: 60_000, maxDelayMs: 60_000 } });
  const lease = await holder.acquire("r", { ttlMs: 60_000 });
  const { tookMs, result } = await timed(() => failure(waiter.acquire("r", { waitMs: 120 })));
  await lease.release();
  await eye.gone("r");
  expect(result).toMatchObject({ code: "LOCK_HELD", message: expect.stringContaining("worker-7") });
  expect(tookMs).toBeGreaterThanOrEqual(119);
  // Whatever else could have woken it comes later.
  expect(tookMs).toBeLessThan(5_500);
});

/** What two callers are told that give up after an attempt of the one in front. */
async function bothGiveUp(locker: Locker, resource: string): Promise<{ readonly inFront: unknown; readonly behind: unknown }> {
  using attempts = attemptsOn(resource);
  const quitting = new AbortController();
  const inFront = failure(locker.acquire(resource, { waitMs: 60_000, signal: quitting.signal }));
  await until(() => attempts.events.length > 0, "the one in front has learnt something");
  const behind = await failure(locker.acquire(resource, { waitMs: 50 }));
  quitting.abort();
  return { inFront: await inFront, behind };
}

test("a caller that never had its turn is told what the one in front learnt: held", async ({ locker, eye }) => {
  await locker.ready();
  await eye.plant("held", [0, 1, 2, 3, 4], 60_000);
  const { inFront, behind } = await bothGiveUp(locker, "held");
  expect(inFront).toMatchObject({ code: "LOCK_ABORTED" });
  expect(behind).toMatchObject({
    code: "LOCK_HELD",
    message: expect.stringMatching(/^no turn for held within waitMs: 1 of this process was in front; .*somebody else/),
  });
});

test("a caller that never had its turn is told what the one in front learnt: no quorum", async ({ own }) => {
  const { nodes, locker } = await own(3);
  await locker.ready();
  await Promise.all([nodes[0]?.kill(), nodes[1]?.kill()]);
  expect((await bothGiveUp(locker, "silent")).behind).toMatchObject({ code: "LOCK_NO_QUORUM" });
  expect(await failure(locker.acquire("silent", { waitMs: 100 }))).toMatchObject({ code: "LOCK_NO_QUORUM" });
});

test("the number of tries can be limited", async ({ shared, eye }) => {
  const locker = shared({ retry: { tries: 1 } });
  await locker.ready();
  await eye.plant("once", [0, 1, 2, 3, 4], 60_000);
  using attempts = attemptsOn("once");
  expect(await failure(locker.acquire("once", { waitMs: 60_000 }))).toMatchObject({ code: "LOCK_HELD" });
  await until(() => attempts.events.length > 0, "the attempt is told of");
  expect(attempts.events).toHaveLength(1);
});

describe("giving up", () => {
  test("by signal rejects with LOCK_ABORTED and its reason, and leaves nothing on any node", async ({ shared, eye }) => {
    const holder = shared();
    const waiter = shared();
    const lease = await holder.acquire("r");
    const aborter = new AbortController();
    const waiting = failure(waiter.acquire("r", { signal: aborter.signal, waitMs: 60_000 }));
    const behind = failure(waiter.acquire("r", { signal: aborter.signal, waitMs: 60_000 }));
    await sleep(20);
    aborter.abort("enough");
    const message = expect.stringMatching(/^the caller gave up after waiting \d+ ms for r$/);
    expect(await waiting).toMatchObject({ code: "LOCK_ABORTED", cause: "enough", resource: "r", message });
    expect(await behind).toMatchObject({ code: "LOCK_ABORTED", cause: "enough" });
    await lease.release();
    await eye.gone("r");
    expect((await holder.tryAcquire("r")).ok).toBe(true);
  });

  test("before it began asks no node", async ({ locker, eye }) => {
    await expect(locker.acquire("r", { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: "LOCK_ABORTED",
    });
    expect(await eye.tokens("r")).toEqual(Array(5).fill(null));
  });

  test("at any moment of an attempt leaves nothing", async ({ locker, eye }) => {
    await locker.ready();
    for (let i = 0; i < 40; i++) {
      const aborter = new AbortController();
      const asked = locker.acquire("r", { signal: aborter.signal });
      const timer = setTimeout(() => aborter.abort(), i % 4);
      await Promise.resolve();
      if (i % 5 === 0) aborter.abort();
      await asked.then(
        (lease) => lease.release(),
        (error: unknown) => expect(error).toMatchObject({ code: "LOCK_ABORTED" }),
      );
      clearTimeout(timer);
    }
    await eye.gone("r");
    expect((await locker.tryAcquire("r")).ok).toBe(true);
  });

  test("delays no caller behind it", async ({ locker }) => {
    const lease = await locker.acquire("r");
    const aborter = new AbortController();
    const quitter = failure(locker.acquire("r", { signal: aborter.signal }));
    const patient = locker.acquire("r");
    aborter.abort();
    await quitter;
    await lease.release();
    expect((await patient).held).toBe(true);
  });
});

test("T2 many who take the same lock in a loop all finish, with tokens that are unique and rise", async ({ shared }) => {
  const lockers = Array.from({ length: 8 }, () => shared({ waitMs: 60_000 }));
  const tokens: number[] = [];
  let holders = 0;
  await Promise.all(
    lockers.map(async (locker) => {
      for (let i = 0; i < 8; i++) {
        await locker.using("r", (lease) => {
          holders++;
          expect(holders).toBe(1);
          tokens.push(lease.token);
          holders--;
        });
      }
    }),
  );
  expect(tokens).toHaveLength(64);
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
});

test("no caller starves: of several loops on the same lock the last is not far behind the first", async ({ shared }) => {
  const lockers = Array.from({ length: 4 }, () => shared({ waitMs: 60_000 }));
  await Promise.all(lockers.map((locker) => locker.ready()));
  const counts = lockers.map(() => 0);
  let isOver = false;
  await Promise.all(
    lockers.map(async (locker, me) => {
      while (!isOver) {
        await locker.using("r", () => sleep(1));
        counts[me] = (counts[me] ?? 0) + 1;
        if (Math.max(...counts) >= 40) isOver = true;
      }
    }),
  );
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(5);
});

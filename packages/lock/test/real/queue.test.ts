// The queue of the processes that wait for one lock: in which order they have it, and what becomes
// of the others when the first one dies, stands still or gives up, or when tickets are lost. Polls
// would come after the test's time, except where they are what is tested.
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { AttemptEvent, Lease, Locker } from "@palisade/lock";
import { Redis } from "ioredis";
import { test as base, expect, failure, listen, timed, until } from "./lock-test.js";

const retry = { minDelayMs: 20_000, maxDelayMs: 60_000 };
/** Far below the first poll. */
const SOON_MS = 5_000;

const test = base
  /** How many wait for "r", as a majority of the shared nodes knows. */
  .extend("queued", ({ redis: { urls, namespace } }, { onCleanup }) => {
    const clients = urls.map((url) => new Redis(url));
    onCleanup(() => {
      for (const client of clients) client.disconnect();
    });
    const lengths = () => Promise.all(clients.map((client) => client.hlen(`{${namespace}}:queue:r`)));
    return {
      lengths,
      until: (count: number) =>
        until(async () => (await lengths()).filter((length) => length === count).length >= 3, `${count} wait`, 20_000),
      forget: () => Promise.all(clients.map((client) => client.del(`{${namespace}}:queue:r`))),
    };
  })
  /** Starts a process that waits for "r". */
  .extend("waiter", ({ redis: { urls: nodes, namespace } }, { onCleanup }) => {
    const started: ChildProcess[] = [];
    onCleanup(() => {
      for (const child of started) child.kill("SIGKILL");
    });
    return () => {
      const options = { nodes, namespace, ttlMs: 10_000, nodeTimeoutMs: 5_000, connectTimeoutMs: 10_000, retry };
      const child = fork(new URL("../../.build/test/real/queue-process.js", import.meta.url), [JSON.stringify(options)]);
      started.push(child);
      return child;
    };
  });

test("W1 sixteen processes that wait have the lock in the order in which they began", async ({ shared, queued }) => {
  const holder = shared();
  const lease = await holder.acquire("r", { renew: true });
  const order: number[] = [];
  const waiting: Promise<void>[] = [];
  for (let i = 0; i < 16; i++) {
    waiting.push(shared({ retry }).using("r", { waitMs: 50_000 }, () => void order.push(i)));
    await queued.until(i + 1);
  }
  await lease.release();
  await Promise.all(waiting);
  expect(order).toEqual(Array.from({ length: 16 }, (_, i) => i));
});

test("W1 a process that takes the lock again and again stands behind those that wait, each time", async ({ shared }) => {
  const lockers = Array.from({ length: 4 }, () => shared({ waitMs: 50_000 }));
  const order: number[] = [];
  const loop = async (locker: Locker, me: number): Promise<void> => {
    for (let i = 0; i < 25; i++) {
      await locker.using("r", async () => {
        order.push(me);
        await sleep(2);
      });
    }
  };
  await Promise.all(lockers.map(loop));
  // In the first rounds the inboxes are opened.
  const longest = Math.max(...lockers.map((_, me) => gapIn(order.slice(30), me)));
  expect(longest).toBeLessThanOrEqual(3 * lockers.length);
});

/** How many turns of others one waited for, at most. */
function gapIn(order: readonly number[], me: number): number {
  const places = order.flatMap((each, place) => (each === me ? [place] : []));
  return Math.max(0, ...places.map((place, i) => place - (places[i - 1] ?? -1) - 1));
}

/** A process waits in front of a locker; something becomes of it; the lock is released. */
async function behind(
  first: ChildProcess,
  given: { shared: (o?: object) => Locker; queued: { until(n: number): Promise<void> }; lease: Lease },
) {
  await given.queued.until(1);
  const next = given.shared({ retry }).acquire("r", { waitMs: 50_000 });
  await given.queued.until(2);
  return {
    release: () =>
      timed(async () => {
        void given.lease.release();
        return next;
      }),
    first,
  };
}

for (const [what, signal] of [
  ["is killed", "SIGKILL"],
  ["stands still", "SIGSTOP"],
] as const) {
  test(`W1 the first one in the queue ${what}: the next one has the lock soon`, async ({ shared, queued, waiter }) => {
    const lease = await shared().acquire("r", { renew: true });
    const story = await behind(waiter(), { shared, queued, lease });
    story.first.kill(signal);
    const { tookMs, result } = await story.release();
    expect(tookMs).toBeLessThan(SOON_MS);
    await result.release();
  });
}

test("W1 several at the front of the queue stand still: one look passes over them, and who goes on has its place again", async ({
  shared,
  queued,
  waiter,
}) => {
  const lease = await shared().acquire("r", { renew: true });
  const still: ChildProcess[] = [];
  for (let i = 0; i < 4; i++) {
    still.push(waiter());
    await queued.until(i + 1);
  }
  const waiting = [shared(), shared(), shared()].map((locker) => locker.acquire("r", { waitMs: 50_000, renew: true }));
  await queued.until(7);
  for (const child of still) child.kill("SIGSTOP");
  await lease.release();
  const taken = await Promise.race(waiting);
  await queued.until(2);
  still[3]?.kill("SIGCONT");
  await queued.until(3);
  const goneOn = new Promise((resolve) => still[3]?.once("message", resolve));
  const { tookMs } = await timed(async () => {
    await taken.release();
    await goneOn;
  });
  expect(tookMs).toBeLessThan(SOON_MS);
  still[3]?.kill("SIGKILL");
  for (const next of waiting) void next.then((each) => each.release());
  await Promise.all(waiting);
});

test("W1 the first one in the queue gives up: the next one has the lock soon, and nothing is kept for who left", async ({
  shared,
  queued,
}) => {
  const lease = await shared().acquire("r", { renew: true });
  const aborter = new AbortController();
  const quitter = failure(shared({ retry }).acquire("r", { waitMs: 50_000, signal: aborter.signal }));
  await queued.until(1);
  const next = shared({ retry }).acquire("r", { waitMs: 50_000 });
  await queued.until(2);
  aborter.abort();
  await quitter;
  await queued.until(1);
  const { tookMs, result } = await timed(async () => {
    void lease.release();
    return next;
  });
  expect(tookMs).toBeLessThan(SOON_MS);
  await result.release();
});

test("W1 a caller that gives up leaves the place of its process to the next one that waits there", async ({ shared, queued }) => {
  const [holder, first, second] = [shared(), shared({ retry }), shared({ retry })];
  const lease = await holder.acquire("r", { renew: true });
  const [aborter, next] = [new AbortController(), new AbortController()];
  const order: string[] = [];
  const quitters = [aborter, next].map(({ signal }) => failure(first.acquire("r", { waitMs: 50_000, signal })));
  await queued.until(1);
  const waiting = [first, second].map((locker, i) =>
    locker.using("r", { waitMs: 50_000 }, () => void order.push(["first", "second"][i] ?? "")),
  );
  await queued.until(2);
  for (const each of [aborter, next]) {
    using refusals = listen<AttemptEvent>("attempt", ({ resources, outcome }) => resources[0] === "r" && outcome === "held");
    each.abort();
    await until(() => refusals.events.length > 0, "the next one has asked");
  }
  await Promise.all(quitters);
  void lease.release();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
});

test("W1 callers of one process that give up together leave no ticket", async ({ shared, queued }) => {
  const lease = await shared().acquire("r", { renew: true });
  const [aborter, waiter] = [new AbortController(), shared({ retry })];
  const quitters = [1, 2, 3].map(() => failure(waiter.acquire("r", { waitMs: 50_000, signal: aborter.signal })));
  await queued.until(1);
  aborter.abort();
  await Promise.all(quitters);
  await queued.until(0);
  await lease.release();
});

/** A process waits for "r", then another; the first has a caller besides that wants "s" as well. */
async function beside(given: { shared: (o?: object) => Locker; queued: { until(n: number): Promise<void> } }, both: readonly string[]) {
  const { shared, queued } = given;
  const [holder, first, second] = [shared(), shared({ retry }), shared({ retry })];
  const [r, s] = await Promise.all([holder.acquire("r", { renew: true }), holder.acquire("s", { renew: true })]);
  const order: string[] = [];
  const aborter = new AbortController();
  const other = failure(first.acquire(both, { waitMs: 50_000, signal: aborter.signal }));
  await queued.until(both[0] === "r" ? 1 : 0);
  const wait = (locker: Locker, name: string) => locker.using("r", { waitMs: 50_000 }, () => void order.push(name));
  const waiting = [wait(first, "first")];
  await queued.until(both[0] === "r" ? 2 : 1);
  waiting.push(wait(second, "second"));
  await queued.until(both[0] === "r" ? 3 : 2);
  const giveUp = async () => {
    aborter.abort();
    await other;
  };
  return { r, s, order, giveUp, waiting };
}

test("W1 a caller of several resources that gives up leaves the other callers of its process their place", async ({ shared, queued }) => {
  const { r, s, order, giveUp, waiting } = await beside({ shared, queued }, ["r", "s"]);
  await giveUp();
  await queued.until(2);
  await r.release();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
  await s.release();
});

test("W1 a caller of several resources does not pass on what is kept for another caller of its process", async ({ shared, queued }) => {
  const { r, s, order, giveUp, waiting } = await beside({ shared, queued }, ["s", "r"]);
  await r.release();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
  await giveUp();
  await s.release();
});

test("W1 of callers that want other sets with one resource so many have tickets, and the others have their turn", async ({
  shared,
  queued,
}) => {
  const [holder, waiter, crowd] = [shared(), shared({ retry }), new AbortController()];
  const lease = await holder.acquire("r", { renew: true });
  using refusals = listen<AttemptEvent>("attempt", ({ resources, outcome }) => resources.length > 1 && outcome === "held");
  const options = { waitMs: 50_000, signal: crowd.signal };
  const quitters = Array.from({ length: 256 }, (_, i) => failure(waiter.acquire(["r", `x${i}`], options)));
  const others = Array.from({ length: 20 }, (_, i) => waiter.using(["r", `y${i}`], { waitMs: 50_000 }, () => {}));
  await until(() => refusals.events.length >= 276 + 256, "all were refused, and 256 again, with tickets", 30_000);
  // Each node executes what was sent before it.
  await waiter.using("s", () => {});
  expect(Math.max(...(await queued.lengths()))).toBe(256);
  crowd.abort();
  await Promise.all(quitters);
  await lease.release();
  await Promise.all(others);
});

test("W1 a release at the moment of a refusal, before there is a ticket, is not missed", async ({ shared }) => {
  const [holder, waiter] = [shared(), shared({ retry })];
  await waiter.ready();
  for (let i = 0; i < 30; i++) {
    const lease = await holder.acquire("r", { renew: true });
    using refusals = listen<AttemptEvent>("attempt", ({ resources, outcome }) => resources[0] === "r" && outcome === "held");
    const next = waiter.acquire("r", { waitMs: 50_000 });
    await until(() => refusals.events.length > i % 3, "it was refused", i % 3 === 0 ? SOON_MS : 100).catch(() => {});
    const { tookMs, result } = await timed(async () => {
      void lease.release();
      return next;
    });
    expect(tookMs).toBeLessThan(SOON_MS);
    await result.release();
  }
});

test("W1 nodes that forgot every ticket delay a waiter by a look", async ({ shared, queued }) => {
  const lease = await shared().acquire("r", { renew: true });
  using refusals = listen<AttemptEvent>("attempt", ({ resources, outcome }) => resources[0] === "r" && outcome === "held");
  const waiting = shared().acquire("r", { waitMs: 50_000 });
  await queued.until(1);
  await until(() => refusals.events.length >= 2, "it has a ticket where it listens");
  await queued.forget();
  const { tookMs, result } = await timed(async () => {
    void lease.release();
    return waiting;
  });
  expect(tookMs).toBeLessThan(SOON_MS);
  await result.release();
});

test("W1 with a minority of the nodes dead, a release is told by the others", async ({ own, open }) => {
  const { running, nodes, locker } = await own(3);
  const lease = await locker.acquire("r", { renew: true });
  using refusals = listen<AttemptEvent>("attempt", ({ resources, outcome }) => resources[0] === "r" && outcome === "held");
  const waiting = open({ nodes: running.urls, retry }).acquire("r", { waitMs: 50_000 });
  await until(() => refusals.events.length >= 2, "it has a ticket");
  await nodes[1]?.kill();
  const { tookMs, result } = await timed(async () => {
    void lease.release();
    return waiting;
  });
  expect(tookMs).toBeLessThan(SOON_MS);
  await result.release();
});

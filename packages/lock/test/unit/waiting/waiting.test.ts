// Waiting in one process: behind a crowd, in the local queue, and for how long.

import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { LocalQueue } from "../../../src/lease/local-queue.js";
import type { Lost } from "../../../src/lease/state.js";
import { readLeaseRequest } from "../../../src/options/policy.js";
import type { GrantBallot } from "../../../src/protocol/ballot.js";
import { TICKET_MS } from "../../../src/protocol/verbs.js";
import type { FirstContact } from "../../../src/waiting/first-contact.js";
import { LookTimer, WaitBudget } from "../../../src/waiting/wait-budget.js";
import { AcquireCalls } from "../../../src/waiting/wait-for-lease.js";
import {
  afterReservationMs,
  backOffMs,
  keepAgainMs,
  laterAtExpiryMs,
  refreshMs,
  reserveMs,
  safetyPollMs,
} from "../../../src/waiting/wake-up.js";
import { ManualClock, ScriptedNode, stateOf } from "../scripted-node.js";

const introduced = { isDone: true } as unknown as FirstContact;

/** All callers in front ask, and get no answer. */
function crowded() {
  const clock = new ManualClock();
  const node = new ScriptedNode("n1", { grant: () => new Promise(() => {}) });
  const state = stateOf([node], clock);
  const calls = new AcquireCalls(state, introduced);
  const ask = (resource: string, options?: object) =>
    calls.waitFor(readLeaseRequest("acquire", state.policy, { resources: resource, options })).catch((error: unknown) => error);
  const tryOnce = (resource: string) =>
    calls.tryOnce(readLeaseRequest("tryAcquire", state.policy, { resources: resource, options: undefined }));
  for (let i = 0; i < 1_024; i++) void ask(`in front ${i}`);
  return { state, clock, ask, tryOnce, asked: () => node.asked.length };
}

const microtasks = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

test("a caller behind a crowd can give up, and never asks", async () => {
  const { ask, asked } = crowded();
  const aborter = new AbortController();
  const quitter = ask("r", { signal: aborter.signal });
  await microtasks();
  aborter.abort("enough");
  expect(await quitter).toMatchObject({ code: "LOCK_ABORTED", cause: "enough" });
  expect(asked()).toBe(1_024);
});

test("of a crowd 1 024 ask nodes that do not answer, again and again; the others wait for them, and are told why", async () => {
  const clock = new ManualClock();
  const asking = new Set<string | undefined>();
  let isSilent = true;
  const node = new ScriptedNode("n1", {
    grant: (node, { resources }) => {
      asking.add(resources[0]);
      return isSilent ? { kind: "unreachable", node: "n1", cause: "TIMEOUT: silent" } : node.granted(7);
    },
  });
  const state = stateOf([Object.assign(node, { onReleased: () => () => {} })], clock);
  const calls = new AcquireCalls(state, introduced);
  const outcomes: unknown[] = [];
  for (let i = 0; i < 1_200; i++) {
    const options = { waitMs: i < 1_150 ? 60_000 : 1_000, ttlMs: 30_000 };
    const request = readLeaseRequest("acquire", state.policy, { resources: `r${i}`, options });
    calls.waitFor(request).then(
      ({ token }) => outcomes.push(token),
      ({ code }) => outcomes.push(code),
    );
  }
  const pass = async (ms: number): Promise<void> => {
    for (const end = clock.now + ms; clock.now < end; clock.advance(50)) await microtasks();
    await microtasks();
  };
  await pass(1_200);
  expect(node.asked.length).toBeGreaterThan(2 * 1_024);
  expect(asking.size).toBe(1_024);
  expect(outcomes).toEqual(new Array(50).fill("LOCK_NO_QUORUM"));
  isSilent = false;
  await pass(1_000);
  expect(outcomes.slice(50)).toEqual(new Array(1_150).fill(7));
});

const endings = [
  ["is given up while the nodes grant it", "LOCK_ABORTED", "granted", true],
  ["took too long", "LOCK_TOO_SLOW", "granted", true],
  ["is held by another", "LOCK_HELD", "held", false],
] as const;
test.for(endings)("W1 of a lock that %s those that wait are told if a quorum had granted it", async ([what, code, kind, tells]) => {
  const clock = new ManualClock();
  const aborter = new AbortController();
  const nodes = ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => answers(node) }));
  const answers = (node: ScriptedNode): GrantBallot => {
    if (what.includes("given up")) aborter.abort("enough");
    if (what.includes("too long")) clock.advance(20_000);
    return kind === "granted" || node.name === "n1"
      ? node.granted(7)
      : { kind: "held", node: node.name, resource: "r", holder: "other", remainingMs: 60_000 };
  };
  const state = stateOf(nodes, clock);
  const request = readLeaseRequest("acquire", state.policy, {
    resources: "r",
    options: { waitMs: 0, ttlMs: 10_000, signal: aborter.signal },
  });
  await expect(new AcquireCalls(state, introduced).waitFor(request)).rejects.toMatchObject({ code });
  await microtasks();
  expect(nodes[0]?.releases.map((question) => question.tells)).toEqual([tells]);
});

test("W1 a lock of a caller that gives up is given back by the nodes that granted it, where other nodes are members by then", async () => {
  const aborter = new AbortController();
  const answers: (() => void)[] = [];
  const grants = (...names: string[]): ScriptedNode[] =>
    names.map(
      (name) => new ScriptedNode(name, { grant: (node) => new Promise((resolve) => answers.push(() => resolve(node.granted(7)))) }),
    );
  const [asked, members] = [grants("n1", "n2", "n3"), grants("n4", "n5", "n6")];
  const state = stateOf(asked);
  const request = readLeaseRequest("acquire", state.policy, { resources: "r", options: { signal: aborter.signal } });
  const acquiring = new AcquireCalls(state, introduced).waitFor(request);
  await microtasks();
  state.nodes = members;
  for (const answer of answers) answer();
  aborter.abort("enough");
  await expect(acquiring).rejects.toMatchObject({ code: "LOCK_ABORTED" });
  await state.inFlight.idle();
  expect([...asked, ...members].map((node) => node.asked.join())).toEqual([...Array(3).fill("grant,release"), "", "", ""]);
});

test("a caller behind a crowd waits for waitMs, and for one request's time at least, and is told why it failed", async () => {
  const { ask, clock } = crowded();
  const [one, other] = [ask("r", { waitMs: 0 }), ask("s", { waitMs: 400 })];
  await microtasks();
  clock.advance(250);
  expect(await one).toMatchObject({ code: "LOCK_TOO_SLOW", message: expect.stringContaining("1024") });
  clock.advance(150);
  expect(await other).toMatchObject({ code: "LOCK_TOO_SLOW" });
});

test("a caller behind a crowd is rejected when the locker closes", async () => {
  const { ask, state } = crowded();
  const waiting = ask("r");
  await microtasks();
  state.wakeAll();
  expect(await waiting).toMatchObject({ code: "LOCK_ABORTED" });
});

test("tryAcquire behind a crowd waits no longer than one request may take, and says why it failed", async () => {
  const { tryOnce, clock } = crowded();
  const answered = tryOnce("r");
  await microtasks();
  clock.advance(250);
  expect(await answered).toMatchObject({
    code: "LOCK_TOO_SLOW",
    message: expect.stringMatching(/^r was not asked for in time: 1024 other attempts/),
  });
});

test.each([
  [60, "claim"],
  [1, "grant"],
])("W1 a caller that is %d ms away from the nodes asks first for a %s", async (distanceMs, verb) => {
  const nodes = ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7) }));
  for (const node of nodes) Object.assign(node, { onReleased: () => () => {}, distanceMs });
  const state = stateOf(nodes);
  const request = readLeaseRequest("acquire", state.policy, { resources: "r", options: {} });
  await new AcquireCalls(state, introduced).waitFor(request);
  expect(nodes.map(({ asked }) => asked.join())).toEqual([verb, verb, verb]);
});

test("resources do not delay each other, and nothing is kept of those that no caller wants", () => {
  const queue = new LocalQueue<Lost>(1);
  const lost = { kind: "lost", reason: "held" } as Lost;
  expect(queue.tryEnter("a") && queue.tryEnter("b")).toBe(true);
  queue.noteLoss("a", lost);
  expect(queue.lastLoss("a")).toBe(lost);
  queue.leave("a");
  expect(queue.tryEnter("a")).toBe(true);
  expect(queue.lastLoss("a")).toBeUndefined();
});

test("no more than its width are inside, and the others enter in the order in which they came", async () => {
  const queue = new LocalQueue<Lost>(2);
  const order: number[] = [];
  let inside = 0;
  let most = 0;
  const pass = async (caller: number): Promise<void> => {
    if (!queue.tryEnter("")) await new Promise<void>((resolve) => queue.enqueue("", resolve));
    order.push(caller);
    most = Math.max(most, ++inside);
    await Promise.resolve();
    inside--;
    queue.leave("");
  };
  await Promise.all(Array.from({ length: 10 }, (_, caller) => pass(caller)));
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(most).toBe(2);
  expect(queue.isOccupied("")).toBe(false);
});

// How long one caller waits, and what ends it early.
const lockerOf = (clock: ManualClock) => ({ clock, isClosed: false, sleeping: new Set<WaitBudget>() });

test("a thousand waiters with one signal put one listener on it, and none when they are awake", async () => {
  const aborter = new AbortController();
  const { signal } = aborter;
  const sleeping = Array.from({ length: 1_000 }, () => new WaitBudget(lockerOf(new ManualClock()), { waitMs: 1_000, signal }));
  const ended = sleeping.map((waiter) => waiter.sleep(1_000));
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  sleeping[0]?.wake();
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  aborter.abort();
  await Promise.all(ended);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a signal is left alone when its last sleeper wakes by itself", async () => {
  const { signal } = new AbortController();
  const clock = new ManualClock();
  const sleeping = new WaitBudget(lockerOf(clock), { waitMs: 1_000, signal }).sleep(10);
  clock.advance(10);
  await sleeping;
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a wait without end outlasts the longest timer there is", async () => {
  const clock = new ManualClock();
  let awake = false;
  const waiter = new WaitBudget(lockerOf(clock), { waitMs: Number.POSITIVE_INFINITY });
  const sleeping = waiter.sleep(waiter.leftMs).then(() => {
    awake = true;
  });
  clock.advance(2 ** 31);
  await Promise.resolve();
  expect(awake).toBe(false);
  waiter.wake();
  await sleeping;
});

// When to try again.
const retry = { tries: Number.POSITIVE_INFINITY, minDelayMs: 4, maxDelayMs: 500 };

test("whether the first came is looked at when what is reserved for it is over", () => {
  for (const chance of [0, 0.5, 0.999]) expect(afterReservationMs(40, chance)).toBeGreaterThan(40);
});

test("a lock is reserved for a message and a claim, by the slowest of the nearest quorum, within bounds", () => {
  const rule = { quorum: 2, nodeTimeoutMs: 250 };
  expect(reserveMs([1, 1, 900], rule)).toBe(40);
  expect(reserveMs([1, 60, 900], rule)).toBe(130);
  expect(reserveMs([1, 600, 900], rule)).toBe(250);
});

test("those in front of a queue look first when a holder's time is over", () => {
  for (const chance of [0, 0.999]) {
    expect(laterAtExpiryMs(3, chance)).toBe(0);
    expect(laterAtExpiryMs(4, chance)).toBeGreaterThanOrEqual(20);
    expect(laterAtExpiryMs(4_000, chance)).toBeLessThanOrEqual(2_020);
  }
});

test("a part is asked for again when others have had it for three times as long as it may be kept", () => {
  expect(keepAgainMs(5, 40)).toBe(640);
  expect(keepAgainMs(2_000, 40)).toBe(2_000);
  expect(keepAgainMs(60_000, 40)).toBe(4_000);
});

test("tickets are asked for again long before they end", () => {
  for (const chance of [0, 0.999]) expect(refreshMs(chance)).toBeLessThan(0.6 * TICKET_MS);
});

test("the back-off doubles up to its bound and is never the same for two", () => {
  expect(backOffMs(1, retry, 1)).toBe(4);
  expect(backOffMs(3, retry, 1)).toBe(16);
  expect(backOffMs(1_000, retry, 1)).toBe(500);
  expect(backOffMs(3, retry, 0.2)).not.toBe(backOffMs(3, retry, 0.9));
  expect(backOffMs(1, retry, 0)).toBeGreaterThan(0);
});

test("the safety poll comes within its bound", () => {
  expect(safetyPollMs(retry, 0)).toBe(250);
  expect(safetyPollMs(retry, 1)).toBe(500);
});

// One timer for the looks of a process.
test("waiters that look within a tenth of a second wake in one turn, and know the same moment", async () => {
  const clock = new ManualClock();
  const looks = new LookTimer(clock);
  const moments: (number | undefined)[] = [];
  const sleeper = (atMs: number): WaitBudget => {
    const budget = new WaitBudget(lockerOf(clock), { waitMs: 60_000 });
    void looks.sleep(budget, clock.now + atMs, 30_000).then((moment) => moments.push(moment));
    return budget;
  };
  const start = Math.ceil(clock.now / 100) * 100;
  clock.advance(start - clock.now);
  sleeper(110);
  sleeper(190);
  sleeper(290);
  const woken = sleeper(150);
  woken.wake();
  await microtasks();
  expect(moments).toEqual([undefined]);
  clock.advance(200);
  await microtasks();
  expect(moments).toEqual([undefined, start / 100 + 2, start / 100 + 2]);
  clock.advance(100);
  await microtasks();
  expect(moments.at(-1)).toBe(start / 100 + 3);
});

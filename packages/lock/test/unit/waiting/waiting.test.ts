// Waiting in one process: behind a crowd, in the local queue, and for how long.

import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { readLeaseRequest } from "../../../src/options/policy.js";
import type { GrantBallot } from "../../../src/protocol/ballot.js";
import type { FirstContact } from "../../../src/waiting/first-contact.js";
import { WaitBudget } from "../../../src/waiting/wait-budget.js";
import { AcquireCalls } from "../../../src/waiting/wait-for-lease.js";
import { reserveMs } from "../../../src/waiting/wake-up.js";
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

test("a lock is reserved for a message and a claim, by the slowest of the nearest quorum, within bounds", () => {
  const rule = { quorum: 2, nodeTimeoutMs: 250 };
  expect(reserveMs([1, 1, 900], rule)).toBe(40);
  expect(reserveMs([1, 60, 900], rule)).toBe(130);
  expect(reserveMs([1, 600, 900], rule)).toBe(250);
});

// What wakes a caller that waits: which messages it heeds, and when it calls the roll.
import { expect, test } from "vitest";
import type { Lost } from "../../../src/lease/state.js";
import type { InspectBallot } from "../../../src/protocol/ballot.js";
import type { ReleaseListener } from "../../../src/protocol/node.js";
import { LookTimer, WaitBudget } from "../../../src/waiting/wait-budget.js";
import { WakeUp } from "../../../src/waiting/wake-up.js";
import { ManualClock, ScriptedNode, stateOf } from "../scripted-node.js";

const settled = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

/** One that was refused by all of three nodes, and sleeps. `seen`: what its looks are told. */
function asleep(hears: "releases" | "nothing", { remainingMs = 60_000, seen = [] as readonly number[] } = {}) {
  const clock = new ManualClock();
  const listeners: ReleaseListener[] = [];
  const nodes = ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7) }));
  const onReleased = (_: string, listener: ReleaseListener) => {
    listeners.push(listener);
    if (hears === "releases") listener.listening();
    return () => {};
  };
  const looks = seen.map((heldForMs) => ({ kind: "seen", holder: "h", hasWaiters: true, remainingMs: heldForMs }));
  const inspect = () => (looks.shift() ?? { kind: "seen", holder: null }) as InspectBallot;
  for (const node of nodes) {
    Object.assign(node, { onReleased });
    Object.assign(node.answers, { inspect, callRoll: () => ({ kind: "absent", node: node.name }) });
  }
  const state = stateOf(nodes, clock);
  const budget = new WaitBudget(state, { waitMs: 60_000 });
  const wakeUp = new WakeUp(state, ["r"], { budget, looks: new LookTimer(clock) });
  const held = { kind: "held", resource: "r", holder: "other", remainingMs, hasTicket: true } as const;
  const ballots = nodes.map(({ name }) => ({ ...held, node: name }));
  const lost: Lost = { kind: "lost", reason: "held", epochMoved: false, ballots, seals: [], grants: 0, leftMs: undefined };
  /** Is refused once more. */
  const refused = () => {
    const { sinceMs, waitedMs } = wakeUp.asking();
    const sleeping = { isAwake: false, askedAtMs: sinceMs + waitedMs };
    void wakeUp.sleep(lost).then(() => {
      sleeping.isAwake = true;
    });
    return sleeping;
  };
  let sleeping = refused();
  const isAwake = async () => {
    await settled();
    return sleeping.isAwake;
  };
  const tell = (when: number, ...told: readonly number[]) => {
    for (const i of told) listeners[i]?.released("first", when);
    return isAwake();
  };
  /** When it asked; again, and is refused. */
  const again = () => {
    sleeping = refused();
    return sleeping.askedAtMs;
  };
  /** What the nodes are asked when the lock is won now. */
  const won = () => {
    wakeUp.asking();
    wakeUp.won();
    return nodes.map(({ asked }) => asked.filter((verb) => verb !== "inspect"));
  };
  return { clock, askedAtMs: sleeping.askedAtMs, tell, isAwake, again, won };
}

const called = [["callRoll"], ["callRoll"], ["callRoll"]];

test("W1 a waiter does not take for its turn what nodes tell of what it asked before", async () => {
  const { clock, askedAtMs, tell, again } = asleep("releases");
  expect(await tell(askedAtMs - 70, 0, 1, 2)).toBe(false);
  clock.advance(60);
  expect(await tell(askedAtMs, 0)).toBe(false);
  expect(await tell(askedAtMs, 1)).toBe(true);
  // In the same millisecond, and refused: the third node tells of what two have told.
  const earlier = again();
  const next = again();
  expect(await tell(earlier, 0, 1, 2)).toBe(false);
  expect(await tell(askedAtMs, 2)).toBe(false);
  clock.advance(60);
  expect(await tell(askedAtMs, 0, 1)).toBe(false);
  expect(await tell(next, 0, 2)).toBe(true);
});

test("W1 a waiter that was told nothing and wins by asking calls the roll, and one that was told does not", async () => {
  const deaf = asleep("nothing");
  deaf.clock.advance(2_000);
  expect(await deaf.isAwake()).toBe(true);
  expect(deaf.won()).toEqual(called);
  const told = asleep("releases");
  expect(await told.tell(told.askedAtMs, 0, 1)).toBe(true);
  expect(told.won()).toEqual([[], [], []]);
});

test("W1 a waiter that finds the lock free a moment before the time of its holder is over calls the roll", async () => {
  const { clock, isAwake, won } = asleep("releases", { remainingMs: 900 });
  clock.advance(870);
  expect(await isAwake()).toBe(false);
  clock.advance(15);
  expect(await isAwake()).toBe(true);
  expect(won()).toEqual(called);
});

test("W1 a waiter that sees the lock held a moment before its end calls no roll: nobody was told", async () => {
  const { clock, isAwake, won } = asleep("releases", { remainingMs: 900, seen: [20] });
  clock.advance(881);
  expect(await isAwake()).toBe(false);
  clock.advance(24);
  expect(await isAwake()).toBe(true);
  expect(won()).toEqual([[], [], []]);
});

test("W1 a waiter that sees a lease renewed looks a moment before its new end", async () => {
  const { clock, isAwake, won } = asleep("releases", { remainingMs: 900, seen: [700] });
  clock.advance(881);
  await settled();
  clock.advance(670);
  expect(await isAwake()).toBe(false);
  clock.advance(12);
  expect(await isAwake()).toBe(true);
  expect(won()).toEqual(called);
});

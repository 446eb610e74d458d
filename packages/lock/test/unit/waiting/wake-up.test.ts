// What wakes a caller that waits: which messages it heeds, and when it looks.
import { expect, test } from "vitest";
import type { Lost } from "../../../src/lease/state.js";
import type { InspectBallot } from "../../../src/protocol/ballot.js";
import type { ReleaseListener } from "../../../src/protocol/node.js";
import { type Consequence, hear, isToldByQuorum, type News, nothingHeard } from "../../../src/waiting/heard.js";
import { LookTimer, WaitBudget } from "../../../src/waiting/wait-budget.js";
import { WakeUp } from "../../../src/waiting/wake-up.js";
import { ManualClock, ScriptedNode, stateOf } from "../scripted-node.js";

const settled = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

interface Given {
  readonly remainingMs?: number;
  /** In which place it is in all queues. */
  readonly place?: number;
  readonly resources?: readonly string[];
  /** What its looks are told; then that it is free. */
  readonly seen?: readonly object[];
}

const heldFor = (remainingMs: number) => ({ holder: "h", remainingMs });

/** One that was refused by all of three nodes, and sleeps. */
function asleep({ remainingMs = 60_000, place = 1, resources = ["r"], seen = [] }: Given = {}) {
  const clock = new ManualClock();
  const listeners: ReleaseListener[] = [];
  const nodes = ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7) }));
  const onReleased = (_: string, listener: ReleaseListener) => {
    listeners.push(listener);
    listener.listening();
    return () => {};
  };
  const looks = [...seen];
  const anew: string[] = [];
  const inspect = () => ({ kind: "seen", holder: null, ...looks.shift() }) as InspectBallot;
  for (const node of nodes) {
    Object.assign(node, { onReleased, listenAnew: () => anew.push(node.name) });
    Object.assign(node.answers, { inspect });
  }
  const state = stateOf(nodes, clock);
  const budget = new WaitBudget(state, { waitMs: 60_000 });
  const wakeUp = new WakeUp(state, resources, { budget, looks: new LookTimer(clock), beganAt: clock.now, since: undefined });
  const held = { kind: "held", resource: "r", holder: "other", remainingMs, place } as const;
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
  const isAwakeAfter = (ms: number) => {
    clock.advance(ms);
    return isAwake();
  };
  const tell = (when: number, otherMs: number, ...told: readonly number[]) => {
    for (const i of told) listeners[i]?.released(otherMs, when);
    return isAwake();
  };
  /** When it asked; again, and is refused. */
  const again = () => {
    sleeping = refused();
    return sleeping.askedAtMs;
  };
  const looked = () => nodes.flatMap(({ asked }) => asked).length;
  return { clock, askedAtMs: sleeping.askedAtMs, tell, isAwake, isAwakeAfter, again, looked, anew };
}

test("W1 a waiter does not take for its turn what nodes tell of what it asked before", async () => {
  const { clock, askedAtMs, tell, again } = asleep();
  expect(await tell(askedAtMs - 70, 0, 0, 1, 2)).toBe(false);
  clock.advance(30);
  expect(await tell(askedAtMs, 0, 0)).toBe(false);
  expect(await tell(askedAtMs, 0, 1)).toBe(true);
  // In the same millisecond, and refused: the third node tells of what two have told.
  const earlier = again();
  const next = again();
  expect(await tell(earlier, 0, 0, 1, 2)).toBe(false);
  expect(await tell(askedAtMs, 0, 2)).toBe(false);
  clock.advance(60);
  expect(await tell(askedAtMs, 0, 0, 1)).toBe(false);
  expect(await tell(next, 0, 0, 2)).toBe(true);
});

test("W1 a waiter that less than a quorum keeps the lock for asks again when that is over", async () => {
  const { askedAtMs, tell, isAwakeAfter } = asleep();
  expect(await tell(askedAtMs, 0, 1)).toBe(false);
  expect(await isAwakeAfter(44)).toBe(false);
  expect(await isAwakeAfter(12)).toBe(true);
});

test("W1 the next one in the queue looks whether the first has come, and asks if it has not", async () => {
  for (const seen of [[], [heldFor(9_000)]]) {
    const { askedAtMs, tell, isAwakeAfter, looked } = asleep({ seen });
    await tell(askedAtMs, 40, 0, 2);
    expect(await isAwakeAfter(44)).toBe(false);
    expect(looked()).toBe(0);
    expect(await isAwakeAfter(12)).toBe(seen.length === 0);
    expect(looked()).toBe(1);
  }
});

test("W1 the last in the queue does not look while others have it in turn", async () => {
  const { askedAtMs, tell, isAwakeAfter, looked } = asleep({ place: 9 });
  for (let i = 0; i < 20; i++) {
    await tell(askedAtMs, 40, 0, 1, 2);
    expect(await isAwakeAfter(20)).toBe(false);
  }
  expect(looked()).toBe(0);
});

test("W1 a waiter of several resources asks for all of them where it would look at one", async () => {
  const { askedAtMs, tell, isAwakeAfter, looked } = asleep({ resources: ["r", "s"] });
  await tell(askedAtMs, 40, 0, 2);
  expect(await isAwakeAfter(56)).toBe(true);
  expect(looked()).toBe(0);
});

test("W1 a waiter that was told nothing asks at the end of the holder's time, and those far behind a moment later", async () => {
  const first = asleep({ remainingMs: 900 });
  expect(await first.isAwakeAfter(899)).toBe(false);
  expect(await first.isAwakeAfter(6)).toBe(true);
  const behind = asleep({ remainingMs: 900, place: 4 });
  expect(await behind.isAwakeAfter(910)).toBe(false);
  expect(await behind.isAwakeAfter(30)).toBe(true);
});

test("W1 a waiter that sees a lease renewed looks again at its new end", async () => {
  const { isAwakeAfter, looked } = asleep({ remainingMs: 900, seen: [heldFor(700)] });
  expect(await isAwakeAfter(905)).toBe(false);
  expect(looked()).toBe(1);
  expect(await isAwakeAfter(690)).toBe(false);
  expect(looked()).toBe(1);
  expect(await isAwakeAfter(20)).toBe(true);
});

test("W1 a waiter whose ticket is gone without a word listens anew and asks; one that was told only asks", async () => {
  const seen = [{ ...heldFor(50_000), isForgotten: true }];
  const deaf = asleep({ seen });
  await deaf.isAwakeAfter(2_400);
  expect(await deaf.isAwakeAfter(50)).toBe(true);
  expect(deaf.anew).toEqual(["n1", "n2", "n3"]);
  const told = asleep({ seen });
  await told.isAwakeAfter(2_400);
  expect(told.anew).toEqual([]);
  expect(await told.tell(told.askedAtMs, 0, 0, 1, 2)).toBe(true);
  expect(told.anew).toEqual([]);
});

// What a caller that waits hears of three nodes, a quorum of two, and what follows from it.

const listening = (node: number): News => ({ kind: "listening", node });
const deaf = (node: number): News => ({ kind: "deaf", node });
const first = (node: number): News => ({ kind: "told", node, otherMs: 0 });
const other = (node: number, otherMs: number): News => ({ kind: "told", node, otherMs });
const refused = (...tickets: readonly (boolean | undefined)[]): News => ({ kind: "refused", tickets });
const asking: News = { kind: "asking" };

/** Every node can tell, and has a ticket. */
const queued: readonly News[] = [listening(0), listening(1), listening(2), refused(true, true, true)];

test.each<[what: string, news: readonly News[], last: Consequence, isToldByQuorum: boolean]>([
  ["a quorum says that it is the first", [...queued, first(0), first(2)], "turn", false],
  ["all say so", [...queued, first(0), first(1), first(2)], "turn", false],
  ["one says so", [...queued, first(1)], "first", true],
  ["one says so twice", [...queued, first(1), first(1)], "first", true],
  ["one says so, another that it is another's", [...queued, first(1), other(0, 40)], "first", true],
  ["all but one say that it is another's", [...queued, first(1), other(0, 40), other(2, 40)], "first", true],
  ["a quorum says that it is another's", [...queued, other(2, 40), other(0, 90)], 90, true],
  ["the slower of a quorum counts", [...queued, other(2, 40), other(0, 90), other(1, 60)], 60, true],
  ["one says that it is another's", [...queued, other(2, 40)], "none", true],
  ["one says so again", [...queued, other(2, 40), other(2, 40)], "none", true],
  ["one says so, and then another's", [...queued, first(0), other(0, 40), first(1)], "first", false],
  ["another's, and then it is the first", [...queued, other(0, 40), other(1, 40), first(0), first(1)], "turn", false],
  ["what was told before it asked again", [...queued, first(0), asking, first(1)], "first", false],
  ["the ticket of the first is spent", [...queued, first(0)], "first", true],
  ["of two that say so, both are", [...queued, first(0), first(1), asking], "none", false],
  ["a new ticket counts", [...queued, first(0), first(1), asking, refused(true, true, true)], "none", true],
  ["a node that has not answered keeps its ticket", [...queued, asking, refused(undefined, undefined, false)], "none", true],
  ["a node that gave none has none", [...queued, refused(true, false, false)], "none", false],
  ["a ticket of a node that cannot tell is none", [listening(0), refused(true, true, true)], "none", false],
  ["one node can tell", [listening(0)], "none", false],
  ["a quorum can tell", [listening(0), listening(2)], "listening", false],
  ["more than a quorum can", [listening(0), listening(2), listening(1)], "none", false],
  ["a quorum can tell again, and has tickets", [...queued, deaf(0), listening(0)], "none", true],
  ["a quorum would still tell", [...queued, deaf(0)], "none", true],
  ["no quorum would tell any more", [...queued, deaf(0), deaf(1)], "deaf", false],
  ["that is said once", [...queued, deaf(0), deaf(1), deaf(2)], "none", false],
  ["none would have told", [listening(0), deaf(0)], "none", false],
])("%s", (_, news, last, isTold) => {
  let heard = nothingHeard(3);
  let consequence: Consequence = "none";
  for (const one of news) [heard, consequence] = hear(heard, one, 2);
  expect(consequence).toBe(last);
  expect(isToldByQuorum(heard, 2)).toBe(isTold);
});

// What wakes a caller that waits: which messages it heeds, and when it calls the roll.
import { expect, test } from "vitest";
import type { ReleaseListener } from "../../../src/protocol/node.js";
import type { Lost } from "../../../src/protocol/outcome.js";
import { WaitBudget } from "../../../src/waiting/wait-budget.js";
import { WakeUp } from "../../../src/waiting/wake-up.js";
import { ManualClock } from "../manual-clock.js";
import { contextOf, ScriptedNode } from "../scripted-node.js";

/** One that was refused by all of three nodes, and sleeps. */
function asleep(hears: "releases" | "nothing", remainingMs = 60_000) {
  const clock = new ManualClock();
  const listeners: ReleaseListener[] = [];
  const nodes = ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7) }));
  const onReleased = (_: string, listener: ReleaseListener) => {
    listeners.push(listener);
    if (hears === "releases") listener.listening();
    return () => {};
  };
  const inspect = async () => ({ kind: "seen", holder: null });
  for (const node of nodes) Object.assign(node, { onReleased, inspect });
  const context = contextOf(nodes, clock);
  const budget = new WaitBudget(clock, context.waiters, { waitMs: 60_000, signal: undefined });
  const wakeUp = new WakeUp(context, ["r"], { budget });
  const held = { kind: "held", resource: "r", holder: "other", remainingMs, hasTicket: true } as const;
  const ballots = nodes.map(({ name }) => ({ ...held, node: name }));
  const lost: Lost = { kind: "lost", reason: "held", epochMoved: false, ballots, seals: [], grants: 0, leftMs: undefined };
  const { sinceMs } = wakeUp.asking();
  let isAwake = false;
  void wakeUp.sleep(lost).then(() => {
    isAwake = true;
  });
  const tell = async (when: number | undefined, ...told: readonly number[]) => {
    for (const i of told) listeners[i]?.released("first", when);
    for (let i = 0; i < 20; i++) await Promise.resolve();
    return isAwake;
  };
  /** What the nodes are asked when the lock is won now. */
  const won = () => {
    wakeUp.asking();
    wakeUp.won();
    return nodes.map(({ asked }) => asked);
  };
  return { clock, sinceMs, tell, won };
}

test("W1 a waiter does not take a message of its wait before for its turn", async () => {
  const { clock, sinceMs, tell } = asleep("releases");
  expect(await tell(sinceMs - 70, 0, 1, 2)).toBe(false);
  clock.advance(60);
  expect(await tell(sinceMs, 0)).toBe(false);
  expect(await tell(sinceMs, 1)).toBe(true);
});

test("W1 a waiter heeds messages of nodes that were taught by earlier versions", async () => {
  const { tell } = asleep("releases");
  expect(await tell(undefined, 0)).toBe(false);
  expect(await tell(undefined, 1)).toBe(true);
});

test("W1 a waiter that was told nothing and wins by asking calls the roll, and one that was told does not", async () => {
  const deaf = asleep("nothing");
  deaf.clock.advance(2_000);
  expect(await deaf.tell(undefined)).toBe(true);
  expect(deaf.won()).toEqual([["release"], ["release"], ["release"]]);
  const told = asleep("releases");
  expect(await told.tell(told.sinceMs, 0, 1)).toBe(true);
  expect(told.won()).toEqual([[], [], []]);
});

test("W1 a waiter that finds the lock free when the time of its holder is over calls the roll", async () => {
  for (const hears of ["releases", "nothing"] as const) {
    const { clock, tell, won } = asleep(hears, 900);
    expect(await tell(undefined)).toBe(false);
    clock.advance(905);
    expect(await tell(undefined)).toBe(true);
    expect(won()).toEqual([["release"], ["release"], ["release"]]);
  }
});

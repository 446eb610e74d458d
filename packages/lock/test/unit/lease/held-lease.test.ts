// One lease between two clocks, and what is left on the nodes when it ends by itself: moments that
// no real clock and no real node can be made to hit.
import { describe, expect, test } from "vitest";
import { renewAgainInMs, renewInMs } from "../../../src/lease/held-lease.js";
import { renew } from "../../../src/lease/renew.js";
import type { ExtendBallot } from "../../../src/protocol/ballot.js";
import { leaseOf, ManualClock, ScriptedNode, stateOf } from "../scripted-node.js";

const ttlMs = 10_000;
const lastsMs = 9_898;
const microtasks = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) await Promise.resolve();
};
const silent = (node: ScriptedNode): ExtendBallot => ({
  kind: "unreachable",
  node: node.name,
  cause: "TIMEOUT after 50 ms",
});
const never = (): Promise<ExtendBallot> => new Promise(() => {});
const confirmed = (node: ScriptedNode): ExtendBallot => ({ kind: "extended", node: node.name });

/** It answers when the test says so. */
function late(ballot: ExtendBallot): { answer: () => Promise<ExtendBallot>; tell: () => void } {
  let tell = (): void => {};
  const promise = new Promise<ExtendBallot>((resolve) => {
    tell = () => resolve(ballot);
  });
  return { answer: () => promise, tell: () => tell() };
}

type Answers = readonly ((node: ScriptedNode) => ExtendBallot | Promise<ExtendBallot>)[];

/** A lease of three nodes, held from now on. */
function held(answers: Answers = []) {
  const clock = new ManualClock();
  const nodes = [0, 1, 2].map((i) => {
    return new ScriptedNode(`n${i + 1}`, { grant: (node) => node.granted(7), extend: answers[i] ?? confirmed });
  });
  return { clock, lease: leaseOf(nodes, clock), asked: () => nodes.map((node) => node.asked.join()) };
}

describe("a machine that was suspended", () => {
  test("L1 has lost its lease, by the wall clock: every getter says so at once, and the signal within a second", () => {
    const { clock, lease } = held();
    const { signal } = lease;
    clock.wallOffsetMs += 60_000;
    expect(signal.aborted).toBe(false);
    clock.advance(1_000);
    expect(signal.aborted).toBe(true);
    const other = held();
    other.clock.wallOffsetMs += 60_000;
    expect(() => other.lease.assertHeld()).toThrow(/ran out without a renewal/);
    expect(other.lease.remainingMs()).toBe(0);
  });

  test("L1 for less than the lease lasts has so much less of it", () => {
    const { clock, lease } = held();
    clock.wallOffsetMs += 4_000;
    expect(lease.remainingMs()).toBe(lastsMs - 4_000);
    lease.assertHeld();
  });

  test("L1 whose wall clock is set back keeps its deadline", () => {
    const { clock, lease } = held();
    const { signal } = lease;
    clock.wallOffsetMs -= 3_600_000;
    clock.advance(lastsMs);
    expect(signal.aborted).toBe(true);
  });
});

describe("a lease that ends by itself", () => {
  test("costs the nodes nothing if they were never asked to hold it longer: their keys run out", async () => {
    const { clock, lease, asked } = held();
    clock.advance(ttlMs);
    expect(lease.held).toBe(false);
    await microtasks();
    expect(asked()).toEqual(["", "", ""]);
  });

  test("is given back if they were: an extension may be executed after the end, and lock the resource for a ttl without a holder", async () => {
    const { clock, lease, asked } = held([silent, silent, never]);
    expect((await lease.extend(60_000)).outcome).toBe("unknown");
    clock.advance(ttlMs);
    expect(lease.held).toBe(false);
    await microtasks();
    expect(asked()).toEqual(["extend,release", "extend,release", "extend,release"]);
  });
});

describe("a node that lost its key", () => {
  test("is given it again for what is left of the ttl, not for a whole one", async () => {
    const third = late({ kind: "missing", node: "n3" });
    const { clock, lease, asked } = held([confirmed, confirmed, third.answer]);
    expect((await lease.extend()).outcome).toBe("renewed");
    clock.advance(200);
    third.tell();
    await microtasks();
    expect(asked()[2]).toBe("extend,heal 9800");
  });

  test("is not given it again by a round in which no quorum confirmed the owner", async () => {
    const missing = (node: ScriptedNode): ExtendBallot => ({ kind: "missing", node: node.name });
    const unsure = held([confirmed, missing, silent]);
    expect((await unsure.lease.extend()).outcome).toBe("unknown");
    const lost = held([confirmed, missing, missing]);
    await expect(lost.lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    await microtasks();
    expect([...unsure.asked(), ...lost.asked()].join()).not.toContain("heal");
  });

  test("is not given it again when the lease is over, or was asked for anew meanwhile", async () => {
    const third = late({ kind: "missing", node: "n3" });
    const ended = held([confirmed, confirmed, third.answer]);
    await ended.lease.extend();
    await ended.lease.release();
    const anew = held([confirmed, confirmed, third.answer]);
    await anew.lease.extend(60_000);
    await anew.lease.extend(1_000);
    third.tell();
    await microtasks();
    expect(ended.asked()[2]).toBe("extend,release");
    // Of the two rounds only the last one heals.
    expect(anew.asked()[2]).toBe("extend,extend,heal 1000");
  });
});

// What a lease is worth when the nodes answer late, or too few of them do: its time counts from the
// question, and an answer brings nothing back.

test("L2 a renewal that too few nodes answer leaves the deadline where it was", async () => {
  const { clock, lease } = held([confirmed, silent, silent]);
  clock.advance(4_000);
  expect(await lease.extend()).toMatchObject({ outcome: "unknown", remainingMs: lastsMs - 4_000 });
  expect(lease.remainingMs()).toBe(lastsMs - 4_000);
});

describe("a renewal whose answer comes late", () => {
  /** Asked for so long after the grant; the nodes say yes when the test lets them. */
  function asked(atMs: number) {
    const nodes = [1, 2, 3].map((i) => late({ kind: "extended", node: `n${i}` }));
    const { clock, lease } = held(nodes.map(({ answer }) => answer));
    clock.advance(atMs);
    const renewal = lease.extend();
    const answer = (): void => {
      for (const { tell } of nodes) tell();
    };
    return { clock, lease, answer, renewal };
  }

  test("L2 prolongs the lease from the moment of the question, because the nodes may have counted from then on", async () => {
    const { clock, lease, answer, renewal } = asked(1_000);
    clock.advance(5_000);
    answer();
    expect(await renewal).toMatchObject({ outcome: "renewed", remainingMs: lastsMs - 5_000 });
    expect(lease.remainingMs()).toBe(lastsMs - 5_000);
  });

  test("L1 does not bring back a lease that has been reported as ended", async () => {
    const { clock, lease, answer, renewal } = asked(5_000);
    const { signal } = lease;
    clock.advance(5_000);
    expect(signal.aborted).toBe(true);
    answer();
    await expect(renewal).rejects.toMatchObject({ code: "LEASE_LOST", reason: "expired" });
    expect([lease.held, lease.remainingMs()]).toEqual([false, 0]);
  });
});

// A renewal while the members change: who is asked, and by whose number it is counted.

test("L2 a lease is planted on the members that are asked to renew it, also when they change meanwhile", async () => {
  const grant = (node: ScriptedNode) => node.granted(7);
  const [n1, n2, n4] = ["n1", "n2", "n4"].map((name) => new ScriptedNode(name, { grant })) as [ScriptedNode, ScriptedNode, ScriptedNode];
  const n3 = new ScriptedNode("n3", {
    grant,
    heal: () => {
      state.nodes = [n1, n2, n4];
      return { kind: "extended", node: "n3" };
    },
  });
  const state = stateOf([n1, n2, n3]);
  const { verdict } = await renew(state, {
    resources: ["r"],
    owner: "o",
    label: "l",
    token: 7,
    ttlMs: 900,
    plantMs: 500,
    isWanted: () => true,
  });
  expect(verdict).toBe("renewed");
  expect([n1, n3, n4].map(({ asked }) => asked)).toEqual([["heal 500", "heal 500", "extend"], ["heal 500"], ["heal 500", "extend"]]);
});

// When a lease is renewed.

test("L1 a renewal comes early enough for several more, should its answer be unknown", () => {
  for (const chance of [0, 0.3, 0.999]) {
    let passedMs = renewInMs(1_000, chance);
    for (let unknowns = 1; unknowns <= 4; unknowns++) passedMs += renewAgainInMs(1_000, unknowns, chance);
    expect(passedMs).toBeLessThan(750);
  }
});

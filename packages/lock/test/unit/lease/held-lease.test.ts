// One lease between two clocks, and what is left on the nodes when it ends by itself: moments that
// no real clock and no real node can be made to hit.
import { describe, expect, test } from "vitest";
import type { ExtendBallot } from "../../../src/protocol/ballot.js";
import { ManualClock } from "../manual-clock.js";
import { leaseOf, ScriptedNode } from "../scripted-node.js";

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

type Answers = readonly ((node: ScriptedNode) => ExtendBallot | Promise<ExtendBallot>)[];

/** A lease of three nodes, held from now on. */
function held(answers: Answers = []) {
  const clock = new ManualClock();
  const nodes = [0, 1, 2].map((i) => {
    const extend = answers[i] ?? ((node: ScriptedNode): ExtendBallot => ({ kind: "extended", node: node.name }));
    return new ScriptedNode(`n${i + 1}`, { grant: (node) => node.granted(7), extend });
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
  /** It answers when the test says so. */
  function late(): { answer: () => Promise<ExtendBallot>; tell: () => void } {
    let tell = (): void => {};
    const promise = new Promise<ExtendBallot>((resolve) => {
      tell = () => resolve({ kind: "missing", node: "n3" });
    });
    return { answer: () => promise, tell: () => tell() };
  }
  const confirmed = (node: ScriptedNode): ExtendBallot => ({ kind: "extended", node: node.name });

  test("is given it again for what is left of the ttl, not for a whole one", async () => {
    const third = late();
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
    const third = late();
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

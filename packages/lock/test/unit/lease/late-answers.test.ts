// What a lease is worth when the nodes answer late, or too few of them do: its time counts from the
// question, and an answer brings nothing back. Orders of events that real nodes do not produce on
// demand.
import { describe, expect, test, vi } from "vitest";
import { QuorumLocker } from "../../../src/locker.js";
import { readPolicy } from "../../../src/options/policy.js";
import type { ExtendBallot } from "../../../src/protocol/ballot.js";
import { LockError } from "../../../src/protocol/errors.js";
import type { Fleet } from "../../../src/protocol/fleet.js";
import { ManualClock } from "../manual-clock.js";
import { leaseOf, ScriptedNode } from "../scripted-node.js";

const ttlMs = 10_000;
const lastsMs = 9_898;

/** Three nodes that say yes to an extension as soon as the test lets them. */
function slowNodes(): { nodes: ScriptedNode[]; answer: () => void } {
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const extend = async (node: ScriptedNode): Promise<ExtendBallot> => {
    await answered;
    return { kind: "extended", node: node.name };
  };
  return {
    nodes: ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7), extend })),
    answer,
  };
}

/** A lease of these nodes, asked for longer some time after it was granted. */
function asked(atMs: number, { nodes, answer }: ReturnType<typeof slowNodes>) {
  const clock = new ManualClock();
  const lease = leaseOf(nodes, clock, ttlMs);
  clock.advance(atMs);
  return { clock, lease, answer, renewal: lease.extend() };
}

test("L2 a renewal that too few nodes answer leaves the deadline where it was", async () => {
  const silent = ["n1", "n2", "n3"].map((name, i) => {
    const ballot: ExtendBallot =
      i === 0 ? { kind: "extended", node: name } : { kind: "unreachable", node: name, cause: "TIMEOUT after 50 ms" };
    return new ScriptedNode(name, { grant: (node) => node.granted(7), extend: () => ballot });
  });
  const { lease, renewal } = asked(4_000, { nodes: silent, answer: () => {} });
  expect(await renewal).toMatchObject({ outcome: "unknown", remainingMs: lastsMs - 4_000 });
  expect(lease.remainingMs()).toBe(lastsMs - 4_000);
});

test("L2 a renewal that no quorum confirms creates no key: the node without a key may have granted it to another owner since", async () => {
  const ballots = [
    (node: string): ExtendBallot => ({ kind: "extended", node }),
    (node: string): ExtendBallot => ({ kind: "missing", node }),
    (node: string): ExtendBallot => ({ kind: "unreachable", node, cause: "ECONNREFUSED" }),
  ];
  const nodes = ballots.map(
    (ballot, i) => new ScriptedNode(`n${i + 1}`, { grant: (node) => node.granted(7), extend: () => ballot(`n${i + 1}`) }),
  );
  const { renewal } = asked(4_000, { nodes, answer: () => {} });
  expect(await renewal).toMatchObject({ outcome: "unknown" });
  expect(nodes.map(({ asked: questions }) => questions)).toEqual([["extend"], ["extend"], ["extend"]]);
});

describe("a renewal whose answer comes late", () => {
  test("L2 prolongs the lease from the moment of the question, because the nodes may have counted from then on", async () => {
    const { clock, lease, answer, renewal } = asked(1_000, slowNodes());
    clock.advance(5_000);
    answer();
    expect(await renewal).toMatchObject({ outcome: "renewed", remainingMs: lastsMs - 5_000 });
    expect(lease.remainingMs()).toBe(lastsMs - 5_000);
  });

  test("L1 does not bring back a lease that has been reported as ended", async () => {
    const { clock, lease, answer, renewal } = asked(5_000, slowNodes());
    const { signal } = lease;
    clock.advance(5_000);
    expect(signal.aborted).toBe(true);
    answer();
    await expect(renewal).rejects.toMatchObject({ code: "LEASE_LOST", reason: "expired" });
    expect([lease.held, lease.remainingMs()]).toEqual([false, 0]);
  });
});

describe("a lease that is adopted", () => {
  const text = JSON.stringify({
    palisade: 1,
    namespace: "palisade",
    resources: ["r"],
    owner: "o".repeat(22),
    token: 7,
    ttlMs,
  });

  function adopterOf(nodes: readonly ScriptedNode[], clock: ManualClock): QuorumLocker {
    const state = {
      admitted: nodes.map(({ name }) => name),
      quarantined: [],
      unreachable: [],
      refusal: undefined,
      maxTtlMs: 60_000,
    };
    const fleet: Fleet = {
      nodes,
      refusal: undefined,
      state: () => state,
      settled: async () => state,
      listResources: async () => [],
      listHeld: async () => [],
      report: async () => [],
      mark: async () => [],
      maxTtlMs: 60_000,
      onChange: () => {},
      members: () => undefined,
      reconfigure: () => Promise.reject(new Error("not asked for here")),
      foundWithout: () => Promise.reject(new Error("not asked for here")),
      listing: {
        id: undefined,
        list: undefined,
        timesMet: 0,
        isBackSince: () => false,
        lookAgain: async () => {},
        standing: async () => undefined,
        change: async () => {},
      },
      probe: async () => [],
      close: async () => {},
    };
    return new QuorumLocker(fleet, readPolicy({ nodes: nodes.map((_, i) => `redis://127.0.0.1:${7_000 + i}`) }), clock);
  }

  test("L2 lasts from the moment of the question, however late the nodes answer", async () => {
    const clock = new ManualClock();
    const { nodes, answer } = slowNodes();
    const adopted = adopterOf(nodes, clock).adopt(text);
    await vi.waitFor(() => expect(nodes.map(({ asked }) => asked.length)).toEqual([1, 1, 1]), {
      interval: 1,
      timeout: 10_000,
    });
    clock.advance(3_000);
    answer();
    expect((await adopted).remainingMs()).toBe(lastsMs - 3_000);
  });

  test("L2 is not believed when too few nodes confirm it: its text says what was true once", async () => {
    const nodes = ["n1", "n2", "n3"].map((name, i) => {
      const ballot: ExtendBallot = i === 0 ? { kind: "extended", node: name } : { kind: "unreachable", node: name, cause: "ECONNREFUSED" };
      return new ScriptedNode(name, { grant: (node) => node.granted(7), extend: () => ballot });
    });
    await expect(adopterOf(nodes, new ManualClock()).adopt(text)).rejects.toMatchObject({
      code: "LOCK_NO_QUORUM",
    });
  });

  test("L2 that too few nodes confirmed is asked for by one owner again, and by another for whoever asks meanwhile", async () => {
    const nodes = ["n1", "n2", "n3"].map((name) => {
      return new ScriptedNode(name, {
        grant: (node) => node.granted(7),
        extend: () => ({ kind: "unreachable", node: name, cause: "TIMEOUT after 50 ms" }),
      });
    });
    const adopter = adopterOf(nodes, new ManualClock());
    await expect(adopter.adopt(text)).rejects.toThrow(LockError);
    await Promise.allSettled([adopter.adopt(text), adopter.adopt(text)]);
    const [first, again, meanwhile] = nodes[0]?.owners ?? [];
    expect(again).toBe(first);
    expect(meanwhile).not.toBe(first);
  });
});

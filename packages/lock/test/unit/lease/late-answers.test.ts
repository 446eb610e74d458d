// What a lease is worth when the nodes answer late, or too few of them do: its time counts from the
// question, and an answer brings nothing back. Orders of events that real nodes do not produce on
// demand.
import { describe, expect, test } from "vitest";
import type { ExtendBallot } from "../../../src/protocol/ballot.js";
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

// Which nodes a release is sent to, and what it says of the ticket that won its lease.
import { describe, expect, test } from "vitest";
import { acquire } from "../../../src/lease/acquire.js";
import { HeldLease } from "../../../src/lease/held-lease.js";
import { releaseEverywhere } from "../../../src/lease/release.js";
import type { Won } from "../../../src/lease/state.js";
import type { Unreachable } from "../../../src/protocol/ballot.js";
import { ScriptedNode, stateOf } from "../scripted-node.js";

const lease = { resources: ["r"], owner: "o", token: 7, ticket: "" };
const nodes = (): ScriptedNode[] => ["n1", "n2", "n3"].map((name) => new ScriptedNode(name, { grant: (node) => node.granted(7) }));

test("W1 a release takes the ticket of its lease along to every node", async () => {
  const asked = nodes();
  await releaseEverywhere(stateOf(asked), lease);
  expect(asked.flatMap(({ releases }) => releases.map(({ ticket }) => ticket))).toEqual(["", "", ""]);
});

test("W1 a release leaves the ticket to another caller of its process that waits for the same", async () => {
  const asked = nodes();
  const state = stateOf(asked);
  state.callers.tryEnter("r");
  await releaseEverywhere(state, lease);
  expect(asked.flatMap(({ releases }) => releases.map(({ ticket }) => ticket))).toEqual([undefined, undefined, undefined]);
});

describe("a lease that one of three nodes could not be asked for", () => {
  const down = { kind: "unreachable", node: "n3", cause: "ECONNREFUSED", unsent: true } satisfies Unreachable;

  async function granted(answer: Unreachable, ticket?: string) {
    const asked = nodes();
    const n3 = new ScriptedNode("n3", { grant: () => answer });
    const state = stateOf([...asked.slice(0, 2), n3]);
    const wait = ticket === undefined ? undefined : { ticket, sinceMs: 0, waitedMs: 0, reserveMs: 40 };
    const won = (await acquire(state, { resources: ["r"], label: "l", ttlMs: 10_000, wait })) as Won;
    return {
      lease: new HeldLease(state, won, { label: "l", renew: false, maxHoldMs: Number.POSITIVE_INFINITY }),
      n3,
      n2: asked[1] as ScriptedNode,
      state,
    };
  }

  test("W1 is not released there where nothing was sent to the node, and is free with it and one more", async () => {
    const { lease, n3, n2 } = await granted(down);
    n2.answers.release = () => ({ kind: "unreachable", node: "n2", cause: "TIMEOUT after 50 ms" });
    const { outcome, ballots } = await lease.release();
    expect(n3.asked).toEqual(["grant"]);
    expect(ballots.map(({ kind, node }) => `${node} ${kind}`)).toEqual(["n1 absent", "n2 unreachable", "n3 absent"]);
    expect(outcome).toBe("free");
  });

  test("W1 is released there where the node may have executed the request", async () => {
    const { lease, n3 } = await granted({ kind: "unreachable", node: "n3", cause: "TIMEOUT after 50 ms" });
    await lease.release();
    expect(n3.asked).toEqual(["grant", "release"]);
  });

  test("W1 is released there where a renewal may have brought it", async () => {
    const { lease, n3 } = await granted(down);
    await lease.extend();
    await lease.release();
    expect(n3.asked.slice(0, 2)).toEqual(["grant", "extend"]);
    expect(n3.asked).toContain("release");
  });

  test("W1 is released by all members where these are others than it was granted by", async () => {
    const { lease, state } = await granted(down);
    const members = nodes();
    Object.assign(state, { nodes: members });
    await lease.release();
    expect(members.map((node) => node.asked.join())).toEqual(["release", "release", "release"]);
  });

  test("W1 is released there where an earlier claim may have left a ticket", async () => {
    const { lease, n3 } = await granted(down, "");
    await lease.release();
    expect(n3.asked).toEqual(["claim", "release"]);
  });
});

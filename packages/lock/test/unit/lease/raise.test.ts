// A forced release while another process takes the lock: an order of events that real servers
// produce only with bad luck.
import { describe, expect, test } from "vitest";
import { summarize } from "../../../src/lease/inspect.js";
import { forceRelease } from "../../../src/lease/raise.js";
import type { InspectBallot } from "../../../src/protocol/ballot.js";
import { ScriptedNode, stateOf } from "../scripted-node.js";

interface Memory {
  token: number;
  holder: string | null;
}

/** Three nodes that do what the scripts do, and tell the test before each raise. */
function threeNodes(beforeRaise: (memories: readonly Memory[], remove: string) => void) {
  const memories: Memory[] = [1, 2, 3].map(() => ({ token: 7, holder: null }));
  const nodes = memories.map((memory, i) => {
    const name = `n${i + 1}`;
    return new ScriptedNode(name, {
      inspect: () => ({ kind: "seen", node: name, holder: memory.holder, owner: memory.holder, remainingMs: null, token: memory.token }),
      raise: ({ now: epoch }, { token, remove }) => {
        if (i === 0) beforeRaise(memories, remove);
        const removed = remove === "holder" ? memory.holder : null;
        memory.token = Math.max(memory.token, token);
        if (removed !== null) memory.holder = null;
        return { kind: "raised", node: name, token: memory.token, epoch, removed };
      },
    });
  });
  return { memories, core: stateOf(nodes) };
}

test("T1 a holder that came between the look and the raise, and is removed, is fenced as well: the fence is above its token", async () => {
  let lease = 0;
  const { core, memories } = threeNodes((all) => {
    if (lease > 0) return;
    lease = 8;
    for (const memory of all) Object.assign(memory, { token: lease, holder: "late" });
  });
  const { fence, removed } = await forceRelease(core, "r", "test");
  expect(removed).toEqual(["late"]);
  expect(fence).toBeGreaterThan(lease);
  expect(memories.filter(({ token }) => token >= fence).length).toBeGreaterThanOrEqual(2);
});

test("T1 a raise that is answered in another epoch than it was asked in does not count: a member was rebuilt meanwhile, and did not see it", async () => {
  let moves = 1;
  const asked = [0, 0, 0];
  const nodes = asked.map((_, i) => {
    const name = `n${i + 1}`;
    return new ScriptedNode(name, {
      inspect: () => ({ kind: "seen", node: name, holder: null, owner: null, remainingMs: null, token: 7 }),
      raise: (node, { token }) => {
        const times = (asked[i] ?? 0) + 1;
        asked[i] = times;
        if (i > 0 && times <= moves) node.now = `e${1 + times}`;
        return { kind: "raised", node: name, token, epoch: node.now, removed: null };
      },
    });
  });
  expect(await forceRelease(stateOf(nodes), "r", "test")).toMatchObject({ fence: 8 });
  // Once in vain, once to raise, once to remove.
  expect(asked).toEqual([3, 3, 3]);
  moves = Number.POSITIVE_INFINITY;
  await expect(forceRelease(stateOf(nodes), "r", "test")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
});

// What the nodes say together about the holder of a resource.
const electorate = { size: 3, quorum: 2 };

function seen(node: string, owner: string | null, remainingMs = 100): InspectBallot {
  const isHeld = owner !== null;
  return {
    kind: "seen",
    node,
    holder: isHeld ? "worker" : null,
    owner,
    remainingMs: isHeld ? remainingMs : null,
    token: 7,
  };
}

const silent: InspectBallot = { kind: "unreachable", node: "n3", cause: "ECONNREFUSED" };

describe("what ballots say together", () => {
  test("one owner on a quorum holds it, until the first key of that quorum runs out", () => {
    const ballots = [seen("n1", "a", 900), seen("n2", "a", 400), seen("n3", "a", 700)];
    expect(summarize("r", ballots, electorate)).toMatchObject({
      state: "held",
      holder: "worker",
      remainingMs: 700,
      token: 7,
    });
  });

  test("two owners with one label are not one holder", () => {
    expect(summarize("r", [seen("n1", "a"), seen("n2", "b"), seen("n3", null)], electorate).state).toBe("split");
    expect(summarize("r", [seen("n1", "a"), seen("n2", "b"), silent], electorate).state).toBe("unknown");
  });

  test("a quorum without a holder is free, and too few answers are unknown", () => {
    expect(summarize("r", [seen("n1", null), seen("n2", null), seen("n3", "a")], electorate).state).toBe("free");
    expect(summarize("r", [seen("n1", "a"), silent, silent], electorate).state).toBe("unknown");
  });
});

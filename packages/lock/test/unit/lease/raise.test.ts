// A forced release while another process takes the lock: an order of events that real servers
// produce only with bad luck.
import { describe, expect, test as plain } from "vitest";
import { summarize } from "../../../src/lease/inspect.js";
import { forceRelease } from "../../../src/lease/raise.js";
import type { InspectBallot, LockError } from "../../../src/protocol/ballot.js";
import { failure } from "../../listening.js";
import { test } from "../../simulation/story.js";
import { ScriptedNode, stateOf } from "../scripted-node.js";

test("L2 T1 a forced release removes the lease that is meant, and never that of the next holder, however close it follows", async (story) => {
  const [holder, next, operator] = [story.actor(), story.actor(), story.actor()];
  let removed = 0;
  for (let i = 0; i < 60; i++) {
    const resource = `r${i}`;
    // As in a fleet in which other names were locked: one node counts ahead of the others.
    const ahead = story.nodes[i % 5];
    const floor = Number(ahead?.command("HGET", "{sim}:node", "floor") ?? 0);
    if (floor > 0) ahead?.command("HSET", "{sim}:node", "floor", String(floor + 20));
    const lease = await holder.locker.acquire(resource);
    const following = next.locker.acquire(resource);
    await story.untilQueued(resource, 1);
    const { token } = await operator.locker.inspect(resource);
    expect(token).toBe(lease.token);
    const released = story.pass(i * 0.1).then(() => lease.release());
    const forced = await operator.locker.fleet.forceRelease(resource, { reason: "a test", token }).catch((error: LockError) => error.code);
    const [later] = await Promise.all([following, released]);
    expect((await later.extend()).outcome, `after ${i} tenths of a millisecond`).toBe("renewed");
    if (typeof forced === "string") expect(forced).toBe("LEASE_LOST");
    else {
      removed++;
      expect(forced.fence).toBeGreaterThan(lease.token);
      expect(later.token).toBeGreaterThan(forced.fence);
    }
    await later.release();
  }
  // The releases came before it, in the middle of it, and after it.
  expect(removed).toBeGreaterThan(10);
  expect(removed).toBeLessThan(60);
});

test("L2 a forced release that names another lease, or one that is over, changes nothing", async (story) => {
  const [holder, { locker: operator }] = [story.actor({ label: "worker-7" }), story.actor()];
  const lease = await holder.locker.acquire("r");
  const stored = () => [story.stored("lock", "r"), story.stored("token", "r")];
  await story.eventually(() => expect(story.stored("lock", "r")).not.toContain(null));
  const before = stored();
  const earlier = operator.fleet.forceRelease("r", { reason: "a test", token: lease.token - 1 });
  expect(await failure(earlier)).toMatchObject({
    code: "LEASE_LOST",
    message: expect.stringMatching(/held by worker-7 under another token/),
  });
  expect(stored()).toEqual(before);
  await lease.release();
  const over = operator.fleet.forceRelease("r", { reason: "a test", token: lease.token });
  expect(await failure(over)).toMatchObject({ code: "LEASE_LOST", message: expect.stringMatching(/nobody holds it any more/) });
  for (const token of [0, 1.5, "7"])
    await expect(operator.fleet.forceRelease("r", { reason: "a test", token } as never)).rejects.toThrow(/^token must be/);
});

plain(
  "T1 a raise that is answered in another epoch than it was asked in does not count: a member was rebuilt meanwhile, and did not see it",
  async () => {
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
    expect(await forceRelease(stateOf(nodes), "r", { reason: "test" })).toMatchObject({ fence: 8 });
    // Once in vain.
    expect(asked).toEqual([2, 2, 2]);
    moves = Number.POSITIVE_INFINITY;
    await expect(forceRelease(stateOf(nodes), "r", { reason: "test" })).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
  },
);

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
  plain("one owner on a quorum holds it, until the first key of that quorum runs out", () => {
    const ballots = [seen("n1", "a", 900), seen("n2", "a", 400), seen("n3", "a", 700)];
    expect(summarize("r", ballots, electorate)).toMatchObject({
      state: "held",
      holder: "worker",
      remainingMs: 700,
      token: 7,
    });
  });

  plain("two owners with one label are not one holder", () => {
    expect(summarize("r", [seen("n1", "a"), seen("n2", "b"), seen("n3", null)], electorate).state).toBe("split");
    expect(summarize("r", [seen("n1", "a"), seen("n2", "b"), silent], electorate).state).toBe("unknown");
  });

  plain("a quorum without a holder is free, and too few answers are unknown", () => {
    expect(summarize("r", [seen("n1", null), seen("n2", null), seen("n3", "a")], electorate).state).toBe("free");
    expect(summarize("r", [seen("n1", "a"), silent, silent], electorate).state).toBe("unknown");
  });
});

// What the nodes say together about who holds a resource.
import { describe, expect, test } from "vitest";
import { summarize } from "../../../src/lease/inspect.js";
import type { InspectBallot } from "../../../src/protocol/ballot.js";

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

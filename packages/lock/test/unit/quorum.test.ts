// Every combination of ballots for up to seven nodes and every allowed quorum: what the verdict
// must be when all have answered is stated here in other words than in the code, and no order of
// arrival may ever lead to another verdict.

import { describe, expect, test } from "vitest";
import { tallyStored } from "../../src/lease/raise.js";
import { type ReleaseVerdict, tallyReleases } from "../../src/lease/release.js";
import { type RenewalVerdict, tallyExtensions } from "../../src/lease/renew.js";
import type { EpochMoved, ExtendBallot, GrantBallot, InspectBallot, ReleaseBallot, SealBallot } from "../../src/protocol/ballot.js";
import * as tally from "../../src/quorum.js";
import { driftMs, neededTtlMs, remainingMs, validityMs } from "../../src/quorum.js";

interface Case<B, Verdict extends string> {
  readonly kinds: readonly B[];
  readonly judge: (ballots: readonly (B | undefined)[], rule: tally.QuorumRule) => Verdict | "open";
  /** The verdict when all have answered, from how many there are of each kind. */
  readonly expected: (count: (...kinds: string[]) => number, rule: tally.QuorumRule) => Verdict;
}

const node = "n1";
const unreachable = { kind: "unreachable", node, cause: "ECONNREFUSED" } as const;
const quarantined = { kind: "quarantined", node } as const;
const moved: EpochMoved = { kind: "epoch_moved", node };
const granted: GrantBallot = { kind: "granted", node, token: 7, epoch: "e" };
const held: GrantBallot = { kind: "held", node, resource: "r", holder: "h", remainingMs: 5 };
const sealed: SealBallot = { kind: "sealed", node, epoch: "e" };
const lost: SealBallot = { kind: "lost", node };
const seen = (token: number): InspectBallot => ({
  kind: "seen",
  node,
  holder: null,
  owner: null,
  remainingMs: null,
  token,
});

const rules: tally.QuorumRule[] = [];
for (let size = 1; size <= 7; size++) for (let quorum = tally.majority(size); quorum <= size; quorum++) rules.push({ size, quorum });

/**
 * Every multiset of kinds, open ballots included: order among nodes does not matter to any tally,
 * which the shuffled check below verifies.
 */
function* multisets<T>(kinds: readonly T[], size: number, from = 0): Generator<T[]> {
  if (size === 0) yield [];
  else for (let i = from; i < kinds.length; i++) for (const rest of multisets(kinds, size - 1, i)) yield [kinds[i] as T, ...rest];
}

function counter(ballots: readonly ({ kind: string } | undefined)[]): (...kinds: string[]) => number {
  return (...kinds) => ballots.filter((ballot) => ballot !== undefined && kinds.includes(ballot.kind)).length;
}

function exhaust<B extends { kind: string }, Verdict extends string>({ kinds, judge, expected }: Case<B, Verdict>): number {
  let checked = 0;
  for (const rule of rules) {
    for (const ballots of multisets<B | undefined>([...kinds, undefined], rule.size)) {
      checked++;
      const verdict = judge(ballots, rule);
      const reversed = judge([...ballots].reverse(), rule);
      if (reversed !== verdict) throw new Error(`the order of ${JSON.stringify({ rule, ballots })} matters: ${verdict}, ${reversed}`);
      const open = ballots.filter((ballot) => ballot === undefined).length;
      const cast = ballots.filter((ballot) => ballot !== undefined);
      const endings = new Set<Verdict>();
      for (const rest of multisets(kinds, open)) endings.add(expected(counter([...cast, ...rest]), rule));
      const must = endings.size === 1 ? [...endings][0] : "open";
      if (verdict !== must) throw new Error(`${JSON.stringify({ rule, ballots })} gives ${verdict}, must give ${must}`);
    }
  }
  return checked;
}

describe("every combination of ballots for 1 to 7 nodes and every quorum from the majority up", () => {
  test("grants: decided exactly when no further ballot could change it, and unreachable is never taken for held", () => {
    const checked = exhaust<GrantBallot | EpochMoved, tally.Verdict>({
      kinds: [granted, moved, held, quarantined, unreachable],
      judge: tally.tallyGrants,
      expected: (count, { quorum }) => {
        if (count("granted") >= quorum) return "yes";
        if (count("granted", "epoch_moved") >= quorum) return "epoch_moved";
        return count("granted", "epoch_moved", "held") >= quorum ? "no" : "silent";
      },
    });
    expect(checked).toBeGreaterThan(4_000);
  });

  test("seals: a token counts as stored only where it was sealed in the epoch in which the attempt began", () => {
    exhaust<SealBallot | EpochMoved, tally.Verdict>({
      kinds: [sealed, moved, lost, quarantined, unreachable],
      judge: tally.tallySeals,
      expected: (count, { quorum }) => {
        if (count("sealed") >= quorum) return "yes";
        if (count("sealed", "epoch_moved") >= quorum) return "epoch_moved";
        return count("sealed", "epoch_moved", "lost") >= quorum ? "no" : "silent";
      },
    });
  });

  test("renewals: lost only when so many nodes do not have us that no quorum is left; silence alone never loses a lease", () => {
    exhaust<ExtendBallot, RenewalVerdict>({
      kinds: [
        { kind: "extended", node },
        { kind: "missing", node },
        { kind: "taken", node, holder: "h", remainingMs: 5 },
        quarantined,
        unreachable,
      ],
      judge: tallyExtensions,
      expected: (count, { size, quorum }) => {
        if (count("extended") >= quorum) return "renewed";
        return count("missing", "taken") > size - quorum ? "lost" : "unknown";
      },
    });
  });

  test("releases: free as soon as a quorum has it no longer", () => {
    exhaust<ReleaseBallot, ReleaseVerdict>({
      kinds: [{ kind: "released", node, listeners: 0 }, { kind: "absent", node }, unreachable],
      judge: tallyReleases,
      expected: (count, { quorum }) => (count("released", "absent") >= quorum ? "free" : "unconfirmed"),
    });
  });

  test("issued tokens: a quorum that stores it proves that it was, a quorum that does not proves that it was not", () => {
    for (const rule of rules) {
      for (const ballots of multisets([seen(6), seen(7), seen(8), quarantined, unreachable, undefined], rule.size)) {
        const storing = ballots.filter((ballot) => ballot?.kind === "seen" && ballot.token >= 7).length;
        const without = ballots.filter((ballot) => ballot?.kind === "seen" && ballot.token < 7).length;
        const verdict = tallyStored(7, ballots, rule);
        if (verdict === "stored") expect(storing).toBeGreaterThanOrEqual(rule.quorum);
        else if (verdict === "unissued") expect(without).toBeGreaterThanOrEqual(rule.quorum);
        else if (verdict === "silent") expect(storing + without).toBeLessThan(rule.quorum);
        else expect(Math.max(storing, without)).toBeLessThan(rule.quorum);
        expect(verdict === "open").toBe(ballots.includes(undefined) && Math.max(storing, without) < rule.quorum);
      }
    }
  });
});

test("a tie of two nodes is lost at once", () => {
  expect(tally.tallyGrants([granted, held], { size: 2, quorum: 2 })).toBe("no");
});

test("T1 T2 every way in which up to seven nodes grant one of three tokens: one that a quorum granted, or else the highest", () => {
  for (const rule of rules) {
    for (const ballots of multisets([4, 5, 6, held, moved, undefined], rule.size)) {
      const cast = ballots.map((one) => (typeof one === "number" ? { ...granted, token: one } : one));
      const { token, nodes, isOpen } = tally.chooseToken(cast, rule);
      const tokens = ballots.filter((one) => typeof one === "number");
      const count = (wanted: number): number => tokens.filter((one) => one === wanted).length;
      const alike = tokens.find((one) => count(one) >= rule.quorum);
      const most = Math.max(0, ...tokens.map(count));
      const open = ballots.filter((one) => one === undefined).length;
      expect({ token, nodes, isOpen }).toEqual({
        token: alike ?? Math.max(0, ...tokens),
        nodes: count(token),
        isOpen: alike === undefined && most + open >= rule.quorum,
      });
    }
  }
});

describe("when a held resource can become free", () => {
  const five: tally.QuorumRule = { size: 5, quorum: 3 };
  const heldFor = (remainingMs: number): GrantBallot => ({ ...held, remainingMs });

  test("when the third of five runs out, if all are held", () => {
    expect(tally.freeInMs([heldFor(50), heldFor(10), heldFor(40), heldFor(20), heldFor(30)], five)).toBe(30);
  });

  test("nodes that granted need not run out", () => {
    expect(tally.freeInMs([granted, heldFor(50), granted, heldFor(20), undefined], five)).toBe(20);
  });

  test("unknown when the nodes that answered cannot make a quorum", () => {
    expect(tally.freeInMs([heldFor(50), heldFor(10), unreachable, quarantined, undefined], five)).toBeUndefined();
  });
});

// What is left of a lease, by the clock that says less.

test("drift is a part of the ttl and two milliseconds", () => {
  expect(driftMs(10_000, 0.01)).toBe(102);
  expect(validityMs(10_000, 0.01)).toBe(9_898);
});

test("L1 time that passed on either clock is over: a suspended machine's monotonic clock stood still", () => {
  expect(remainingMs(9_898, 100, 100)).toBe(9_798);
  expect(remainingMs(9_898, 100, 60_000)).toBeLessThan(0);
  expect(remainingMs(9_898, 60_000, -3_600_000)).toBeLessThan(0);
});

test("L1 for every ttl and drift factor the validity ends before the ttl does", () => {
  for (let ttlMs = 1; ttlMs < 100_000; ttlMs = Math.ceil(ttlMs * 1.3)) {
    for (const factor of [0, 0.01, 0.1, 0.5]) expect(validityMs(ttlMs, factor)).toBeLessThanOrEqual(ttlMs - 2);
  }
});

test("the ttl that is needed for a validity is the one that gives it", () => {
  for (const ttlMs of [5, 100, 10_000, 86_400_000]) expect(neededTtlMs(validityMs(ttlMs, 0.01), 0.01)).toBeCloseTo(ttlMs, 6);
});

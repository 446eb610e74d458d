// The checkers of leases and counters against histories that keep and that break what they watch,
// and against a plain definition that looks at every pair.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { judge } from "../../src/checkers/judge.js";
import * as checkers from "../../src/checkers/leases.js";
import { type CounterSample, emptyHistory, type LeaseRecord, type Span } from "../../src/history.js";

/** A sound lease of 10 ms that was given back after 5. */
function lease(token: number, grantedAt: number, more: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    client: 0,
    resource: "r",
    token,
    beganAt: grantedAt - 1,
    grantedAt,
    validUntilAt: grantedAt + 10,
    releasedAt: grantedAt + 5,
    ...more,
  };
}

/** Without what was promised to be there. */
function withoutRelease({ releasedAt: _, ...record }: LeaseRecord): LeaseRecord {
  return record;
}

test("T1 a lower token for an acquire that began after the grant of a higher one is found, with both holders", () => {
  const leases = [lease(9, 100), lease(1, 110, { beganAt: 50 }), lease(4, 200, { client: 7 })];
  const what = expect.stringMatching(/client 7's token 4 .* began after client 0's token 9 .* was granted/);
  expect(checkers.tokensAgainstTime(leases)).toEqual([expect.objectContaining({ promise: "T1", what })]);
});

describe("holders", () => {
  test("two that are valid at one time are found", () => {
    expect(checkers.overlaps([lease(1, 100), lease(2, 104.5)])).toEqual([
      expect.objectContaining({ promise: "L2", what: expect.stringMatching(/were valid together for 0\.500 ms/) }),
    ]);
  });

  const stopped = lease(1, 100, { releasedAt: 500 });
  const early = { fromAt: 90, untilAt: 91 };
  test.each<[title: string, found: number, leases: LeaseRecord[], clockJump?: Span]>([
    ["one that was stopped counts until its deadline", 1, [stopped, lease(2, 109)]],
    ["one that was stopped counts until its deadline, not until it gave back", 0, [stopped, lease(2, 110)]],
    ["one that never gave back counts until its deadline", 1, [withoutRelease(lease(1, 100)), lease(2, 109)]],
    [
      "one that was told of its end before its deadline counts until then",
      0,
      [lease(1, 100, { toldAt: 102, releasedAt: 109 }), lease(2, 103)],
    ],
    ["one that had ended before its holder had it in hand is no holder", 0, [lease(1, 100), lease(2, 102, { validUntilAt: 101 })]],
    [
      "one that was there when a clock was set forward is not held against those that came after",
      0,
      [lease(1, 100), lease(2, 104)],
      { fromAt: 101, untilAt: 102 },
    ],
    ["one that came after a clock was set forward is held against others", 1, [lease(1, 100), lease(2, 104)], early],
    ["one that was asked for before a clock was set forward is not", 0, [lease(1, 100), lease(2, 104, { beganAt: 80 })], early],
    [
      "a long one overlaps what comes after a short one inside it",
      2,
      [lease(1, 100, { validUntilAt: 200, releasedAt: 190 }), lease(2, 110), lease(3, 150)],
    ],
  ])("%s", (_, found, leases, clockJump) => {
    expect(checkers.overlaps(leases, clockJump === undefined ? [] : [clockJump])).toHaveLength(found);
  });
});

describe("the end of a lease", () => {
  const late = checkers.L1_TOLERANCE_MS + 1;

  test("that the holder learns too late is found, whether it is told or gives back", () => {
    const found = [expect.objectContaining({ promise: "L1", what: expect.stringMatching(/ran for 51\.0 ms after its end/) })];
    expect(checkers.toldTooLate([lease(1, 100, { toldAt: 110 + late, releasedAt: 300 })], [])).toEqual(found);
    expect(checkers.toldTooLate([lease(1, 100, { releasedAt: 110 + late })], [])).toEqual(found);
  });

  test("that it never learns is found", () => {
    expect(checkers.toldTooLate([withoutRelease(lease(1, 100))], [])).toHaveLength(1);
  });

  test("may come later by the time in which that client, and no other, did not run", () => {
    const told = [lease(1, 100, { toldAt: 400, releasedAt: 400 })];
    expect(checkers.toldTooLate(told, [{ client: 0, fromAt: 90, untilAt: 380 }])).toEqual([]);
    expect(checkers.toldTooLate(told, [{ client: 1, fromAt: 90, untilAt: 380 }])).toHaveLength(1);
    expect(checkers.toldTooLate(told, [{ client: 0, fromAt: 200, untilAt: 380 }])).toHaveLength(1);
  });
});

describe("counters", () => {
  const seen = (floor: number, counter: number, where: Partial<CounterSample> = {}): CounterSample => {
    return { node: "n1", memory: 0, floor, counter, ...where };
  };

  test("that fall are found, floor and counter alike", () => {
    expect(checkers.fallenCounters([seen(5, 5), seen(4, 5)])).toEqual([{ promise: "counters", what: expect.stringMatching(/^n1 fell/) }]);
    expect(checkers.fallenCounters([seen(5, 5), seen(5, 4)])).toHaveLength(1);
  });

  test("of another node, or of another memory, are another matter", () => {
    expect(checkers.fallenCounters([seen(5, 5), seen(1, 1, { node: "n2" }), seen(2, 2, { memory: 1 }), seen(6, 6)])).toEqual([]);
  });
});

test("a lock that was left behind is found", () => {
  expect(judge({ ...emptyHistory, leftBehind: ["n2 lock"] })).toEqual([{ promise: "end", what: "left behind: n2 lock" }]);
});

describe("for any history, what is found is what looking at every pair finds", () => {
  const span = fc.record({ client: fc.nat(3), token: fc.nat(30), at: fc.nat(60), waits: fc.nat(8), lasts: fc.nat(9), holds: fc.nat(9) });
  const leases = fc.array(span, { maxLength: 20 }).map((spans) =>
    spans.map(({ client, token, at, waits, lasts, holds }): LeaseRecord => {
      return { client, resource: "r", token, beganAt: at - waits, grantedAt: at, validUntilAt: at + lasts, releasedAt: at + holds };
    }),
  );
  const anyPair = (all: readonly LeaseRecord[], isWrong: (a: LeaseRecord, b: LeaseRecord) => boolean): boolean =>
    all.some((a) => all.some((b) => a !== b && isWrong(a, b)));
  const end = ({ validUntilAt, releasedAt = validUntilAt }: LeaseRecord): number => Math.min(validUntilAt, releasedAt);

  test("T2", () => {
    fc.assert(fc.property(leases, (all) => checkers.repeatedTokens(all).length > 0 === anyPair(all, (a, b) => a.token === b.token)));
  });

  test("T1", () => {
    const isWrong = (a: LeaseRecord, b: LeaseRecord): boolean => a.grantedAt < b.beganAt && b.token <= a.token;
    fc.assert(fc.property(leases, (all) => checkers.tokensAgainstTime(all).length > 0 === anyPair(all, isWrong)));
  });

  test("L2", () => {
    const isWrong = (a: LeaseRecord, b: LeaseRecord): boolean => Math.max(a.grantedAt, b.grantedAt) < Math.min(end(a), end(b));
    fc.assert(fc.property(leases, (all) => checkers.overlaps(all).length > 0 === anyPair(all, isWrong)));
  });
});

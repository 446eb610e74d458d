// How a fencing token is written and read.
import fc from "fast-check";
import { expect, test } from "vitest";
import { compareTokens, formatToken, isToken, LeastToken, MAX_TOKEN, parseToken } from "../../../src/protocol/token.js";

test("a token is an integer from 1 to 999999999999999", () => {
  for (const token of [1, 42, 1_790_000_000_000, MAX_TOKEN]) expect(isToken(token)).toBe(true);
  for (const not of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, MAX_TOKEN + 1, "7", 7n, null, undefined])
    expect(isToken(not)).toBe(false);
});

test("what is written is read again, and nothing else is", () => {
  for (const token of [1, 42, 1_790_000_000_000, MAX_TOKEN]) expect(parseToken(formatToken(token))).toBe(token);
  for (const text of ["", "0", "07", "+7", "-7", "7.0", "7e3", " 7", "7 ", "1000000000000000", "seven", "٧"])
    expect(parseToken(text)).toBeUndefined();
});

test("a number that is no token is not written", () => {
  expect(() => formatToken(1.79e15)).toThrow(RangeError);
  expect(formatToken(1_790_000_000_000)).toBe("1790000000000");
});

test("later tokens sort behind earlier ones", () => {
  expect([30, 4, 100].sort(compareTokens)).toEqual([4, 30, 100]);
});

test("the least token is unknown at first, then what was heard and 50 for each millisecond since, a second at most", () => {
  const least = new LeastToken();
  expect(least.at(7)).toBe(0);
  least.hear(1_000, 10);
  expect([10, 10.03, 11, 1_010, 9_999].map((now) => least.at(now))).toEqual([1_000, 1_001, 1_050, 51_000, 51_000]);
  least.hear(900, 20);
  expect(least.at(20)).toBe(1_500);
  least.hear(5_000, 20);
  expect(least.at(21)).toBe(5_050);
  least.hear(MAX_TOKEN, 22);
  expect(least.at(30)).toBe(MAX_TOKEN);
});

test("lockers that hear each other's tokens name none above the first one, 50 for each millisecond and one for each grant", () => {
  const heard = fc.array(fc.record({ locker: fc.nat(3), afterMs: fc.double({ min: 0, max: 3_000, noNaN: true }) }), { maxLength: 200 });
  fc.assert(
    fc.property(heard, (steps) => {
      const lockers = Array.from({ length: 4 }, () => new LeastToken());
      let [floor, now] = [1_000_000, 0];
      for (const [grants, { locker, afterMs }] of steps.entries()) {
        now += afterMs;
        // As a node grants a resource without a counter.
        floor = Math.max(floor + 1, lockers[locker]?.at(now) ?? 0);
        lockers[locker]?.hear(floor, now);
        expect(floor).toBeLessThanOrEqual(1_000_000 + 50 * now + grants + 1);
      }
    }),
  );
});

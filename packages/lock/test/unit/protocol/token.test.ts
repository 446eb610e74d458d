// How a fencing token is written and read.
import { expect, test } from "vitest";
import { compareTokens, formatToken, isToken, MAX_TOKEN, parseToken } from "../../../src/protocol/token.js";

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

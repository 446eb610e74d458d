// The checker of crash histories finds each kind of fault. One that found nothing would make every
// crash test green.
import { describe, expect, test } from "vitest";
import { type Kept, type Told, violations } from "../../support/write-history.js";

const told = (seq: number, token: number, answer: Told["answer"]): Told => ({ resource: "r", token, seq, answer });
const kept = (rev: number, token: number, seq: number): Kept => ({ resource: "r", rev, token, seq });
const accepted = (rev: number): Told["answer"] => ({ kind: "accepted", rev });
const refused: Told["answer"] = { kind: "refused", code: "fencing_token_stale" };
const unknown: Told["answer"] = { kind: "unknown" };

describe("the history checker", () => {
  test("accepts a history in which every answer is true", () => {
    expect(
      violations([told(1, 1, accepted(1)), told(2, 2, unknown), told(3, 1, refused), told(4, 2, unknown)], [kept(1, 1, 1), kept(2, 2, 2)]),
    ).toEqual([]);
  });

  test.for([
    ["a write that was accepted and is not there", [told(1, 1, accepted(1))], [], /accepted as revision 1 and is nowhere/],
    ["a write that was accepted as another revision", [told(1, 1, accepted(2))], [kept(1, 1, 1)], /accepted as revision 2 and is 1/],
    ["a write that was refused and is there", [told(1, 1, refused)], [kept(1, 1, 1)], /was refused .* and is stored/],
    ["a write that is there twice", [told(1, 1, unknown)], [kept(1, 1, 1), kept(2, 1, 1)], /stored 2 times/],
    ["a write that nobody sent", [], [kept(1, 1, 1)], /nobody sent it/],
    ["a token that falls", [told(1, 2, accepted(1)), told(2, 1, accepted(2))], [kept(1, 2, 1), kept(2, 1, 2)], /^G1 .* token 1 after 2/],
    ["a revision that is missing", [told(1, 1, accepted(2))], [kept(2, 1, 1)], /revision 1 is missing/],
    ["a write that changed on the way", [told(1, 1, unknown)], [kept(1, 9, 1)], /stored as something else/],
  ] as const)("finds %s", ([, tellings, keepings, pattern]) => {
    expect(violations(tellings, keepings)).toEqual(expect.arrayContaining([expect.stringMatching(pattern)]));
  });
});

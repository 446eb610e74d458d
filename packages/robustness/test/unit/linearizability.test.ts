// The checker of concurrent histories against histories made by hand whose order is obvious, and
// against a plain trial of all orders for small ones of any kind.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { linearizability, type RegisterOperation } from "../../src/checkers/judge.js";

const never = Number.POSITIVE_INFINITY;

function read(sees: string | null, fromAt: number, untilAt: number): RegisterOperation {
  return { name: `read ${sees}`, fromAt, untilAt, expects: sees, makes: undefined };
}

function update(expects: string | null, makes: string | null, [fromAt, untilAt]: readonly [number, number]): RegisterOperation {
  return { name: `${expects} → ${makes}`, fromAt, untilAt, expects, makes };
}

function isLinearizable(...operations: RegisterOperation[]): boolean {
  return linearizability(operations).linearizable;
}

describe("a register that is read and modified", () => {
  const [made, changed] = [update(null, "a", [0, 1]), update("a", "b", [2, 6])];
  const unanswered = update(null, "a", [0, never]);
  const removed = update("a", null, [2, 3]);
  test.each<[title: string, expected: boolean, ...operations: RegisterOperation[]]>([
    ["one after the other", true, made, read("a", 1.5, 1.7), changed, read("b", 8, 9)],
    ["a read that shows what was replaced before it began cannot be told", false, made, changed, read("a", 7, 8)],
    ["a read during a change may show either side of it", true, made, changed, read("a", 3, 4), read("b", 4.5, 5)],
    ["two reads during one change must not go back", false, made, changed, read("b", 3, 4), read("a", 5, 6)],
    ["two changes of one and the same document are a lost update", false, made, changed, update("a", "c", [2, 5])],
    [
      "a change that was never answered may happen long after it was sent",
      true,
      ...[unanswered, read(null, 1, 2), read(null, 3, 4), read("a", 5, 6)],
    ],
    ["a change that was never answered happens once", false, unanswered, read("a", 1, 2), read(null, 3, 4)],
    ["a document that was removed cannot be changed", false, made, removed, update("a", "b", [4, 5])],
  ])("%s", (_, expected, ...operations) => {
    expect(isLinearizable(...operations)).toBe(expected);
  });

  test("what cannot come next is named, with how far it went", () => {
    const judgement = linearizability([update(null, "a", [0, 1]), read("a", 2, 3), read("x", 4, 5)]);
    expect(judgement).toMatchObject({ linearizable: false, told: 2, stuck: [{ name: "read x" }] });
  });

  test("twenty thousand operations in turn, each with company, are no more work than they are many", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => update(i === 0 ? null : `${i - 1}`, `${i}`, [i * 10, i * 10 + 12]));
    const reads = many.map((_, i) => read(`${i}`, i * 10 + 5, i * 10 + 14));
    expect(isLinearizable(...many, ...reads)).toBe(true);
  });
});

/** By trying all orders. */
function canBeTold(operations: readonly RegisterOperation[], state: string | null): boolean {
  if (operations.length === 0) return true;
  return operations.some((next) => {
    const others = operations.filter((other) => other !== next);
    if (others.some(({ untilAt }) => untilAt < next.fromAt)) return false;
    return state === next.expects && canBeTold(others, next.makes === undefined ? state : next.makes);
  });
}

const values = fc.constantFrom(null, "a", "b", "c");
const anyOperation = fc
  .record({
    expects: values,
    makes: fc.option(values, { nil: undefined }),
    fromAt: fc.nat(12),
    lasts: fc.option(fc.nat(8), { nil: never }),
  })
  .map(({ expects, makes, fromAt, lasts }): RegisterOperation => {
    return { name: `${expects} → ${makes}`, fromAt, untilAt: fromAt + lasts, expects, makes };
  });

test("for any small history the verdict is that of a trial of all orders", () => {
  fc.assert(
    fc.property(fc.array(anyOperation, { maxLength: 6 }), (operations) => isLinearizable(...operations) === canBeTold(operations, null)),
    { numRuns: 2_000 },
  );
});

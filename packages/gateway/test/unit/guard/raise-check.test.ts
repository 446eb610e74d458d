// What the gateway remembers of resources to save questions: a bounded number, and forgetting one
// costs a question, never a verdict.
import { expect, test } from "vitest";
import { RaiseCheck } from "../../../src/guard/raise-check.js";
import { SEEN_FOR_MS } from "../../../src/store/move-fence.js";

test("G4 of resources that come and go, the last 10 000 are remembered, and a forgotten one is asked for anew", async () => {
  let questions = 0;
  const verify = async () => {
    questions++;
    return "issued" as const;
  };
  const check = new RaiseCheck({ verify, unreachable: "refuse", observe: () => {} });
  await check.ask("resource 0", 5);
  for (let i = 1; i <= 10_000; i++) check.accepted(`resource ${i}`, 5, "not asked");
  const remembered = Array.from({ length: 10_001 }, (_, i) => i).filter((i) => check.knows(`resource ${i}`));
  expect(remembered).toHaveLength(10_000);
  expect(check.verificationOf("resource 0", 5)).toBe("unverified");
  // Accepted is not verified: the fence may have been lowered since.
  expect(check.verificationOf("resource 1", 5)).toBe("unverified");
  expect(check.verificationOf("resource 1", 6)).toBe("ask");
  await check.ask("resource 0", 5);
  expect(questions).toBe(2);
  expect(check.knows("resource 1")).toBe(false);
});

const stale = (presentedToken: number, currentToken: number) =>
  ({ kind: "stale", resource: "orders/1", presentedToken, currentToken }) as const;

/** One that was told so at 1 000 ms. */
function refusedBy(fence: number): RaiseCheck {
  const check = new RaiseCheck({ verify: undefined, unreachable: "refuse", observe: () => {} });
  check.refused([{ refusal: stale(3, fence) }], 1_000);
  return check;
}

test("G1 a fence that has just refused a write refuses lower tokens of its resource, and no others", () => {
  const refusalOf = (token: number, resource = "orders/1") => refusedBy(9).refusalOf({ resource, token }, 1_000);
  expect(refusalOf(8)).toEqual(stale(8, 9));
  expect([refusalOf(9), refusalOf(10), refusalOf(8, "orders/2")]).toEqual([undefined, undefined, undefined]);
});

test("G1 a fence refuses for a moment after it was asked for, and the last one that was heard of counts", async () => {
  const check = refusedBy(9);
  const refusalOf = (token: number, nowMs: number) => check.refusalOf({ resource: "orders/1", token }, nowMs);
  expect(refusalOf(3, 1_000 + SEEN_FOR_MS - 1)).toEqual(stale(3, 9));
  expect(refusalOf(3, 1_000 + SEEN_FOR_MS)).toBeUndefined();
  check.refused([{ refusal: stale(3, 5) }], 2_000);
  expect([refusalOf(3, 2_000), refusalOf(5, 2_000)]).toEqual([stale(3, 5), undefined]);
  check.accepted("orders/1", 5, "not asked");
  expect(refusalOf(3, 2_000)).toEqual(stale(3, 5));
  // When the answer to a write that was accepted was sent is not known.
  check.accepted("orders/1", 7, "not asked");
  expect(refusalOf(3, 2_000)).toBeUndefined();
});

test("G1 a token that the lock issued and nobody stored refuses nothing", async () => {
  const check = new RaiseCheck({ verify: async () => "issued", unreachable: "refuse", observe: () => {} });
  check.refused([{ refusal: stale(3, 5) }], 1_000);
  await check.ask("orders/1", 900);
  expect(check.refusalOf({ resource: "orders/1", token: 7 }, 1_000)).toBeUndefined();
  expect([check.isStored("orders/1", 5), check.isStored("orders/1", 900)]).toEqual([true, false]);
});

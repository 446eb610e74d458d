// What the gateway remembers of resources to save questions: a bounded number, and forgetting one
// costs a question, never a verdict.
import { expect, test } from "vitest";
import { RaiseCheck } from "../../../src/write/raise-check.js";

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

test("G1 of the fence that refused a write only the database is believed, and not a token that the lock issued", async () => {
  const check = new RaiseCheck({ verify: async () => "issued", unreachable: "refuse", observe: () => {} });
  check.refused([{ refusal: { kind: "stale", resource: "orders/1", presentedToken: 3, currentToken: 5 } }]);
  await check.ask("orders/1", 900);
  expect([check.isStored("orders/1", 5), check.isStored("orders/1", 900)]).toEqual([true, false]);
});

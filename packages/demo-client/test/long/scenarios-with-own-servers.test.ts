// Every scenario in which servers, clocks or networks break, on servers of its own: each ends as it
// must, and so does its control.
import { expect } from "@palisade/testkit/vitest";
import { scenarios } from "../../src/scenarios/catalogue.js";
import { run, scenario, test } from "../support/scenarios.js";

const names = [
  "replies-in-flight",
  "clock-jump",
  "node-amnesia",
  "replica-failover",
  "majority-down",
  "extend",
  "store-failover",
  "restored-backup",
  "other-members",
];

for (const name of names) {
  test(`${name}: ${scenario(name).proven}`, { timeout: 120_000 }, async ({ environment }) => {
    const { outcome, events } = await run(environment, scenario(name));
    // Compared first, because it says why a scenario differs.
    expect(events.at(-1)).toMatchObject({ event: "end", ok: true, proven: scenario(name).proven });
    expect(outcome).toBe("proven");
  });
}

test("every scenario has a control, and a last line that says what was proven", () => {
  for (const { acts, proven } of scenarios) {
    expect(acts.some(({ title }) => title.startsWith("control: "))).toBe(true);
    expect(proven).toMatch(/\.$/);
  }
});

// Every scenario that breaks no server, run by real processes on real servers: each ends as it
// must, and so does its control.
import { expect, vi } from "@palisade/testkit/vitest";
import { run, scenario, test } from "../support/scenarios.js";

vi.setConfig({ testTimeout: 120_000 }); // No claim is about how fast the machine is.

test("D1 the paused client wakes up, writes and is told that it is stale; without the fence the newer write is lost", async ({
  environment,
}) => {
  const { outcome, checks, events } = await run(environment, scenario("gc-pause"));
  expect(checks.map(({ act, claim, ok }) => [act, claim, ok])).toEqual([
    ["through the gateway", "worker 2 got the lock only when worker 1's lease was over", true],
    ["through the gateway", "the second lease has the greater token", true],
    ["through the gateway", "worker 1 is told that its token is stale", true],
    ["through the gateway", "what is stored is worker 2's", true],
    ["control: the same, straight into a table", "worker 2 got the lock only when worker 1's lease was over", true],
    ["control: the same, straight into a table", "worker 1's late write is stored", true],
    ["control: the same, straight into a table", "worker 2's update is lost", true],
  ]);
  expect(outcome).toBe("proven");
  const steps = events.filter((event) => event.event === "step");
  expect(steps.filter(({ kind }) => kind === "stops" || kind === "resumes").map(({ from, kind }) => [from, kind])).toEqual([
    ["worker 1", "stops"],
    ["worker 1", "resumes"],
    ["worker 1", "stops"],
    ["worker 1", "resumes"],
  ]);
});

for (const name of ["version-column", "advisory-lock", "event-loop-stall", "delayed-write", "owner-check", "three-items", "cron-once"]) {
  test(`${name}: ${scenario(name).proven}`, async ({ environment }) => {
    const { outcome, events } = await run(environment, scenario(name));
    // Compared first, because it says why a scenario differs.
    expect(events.at(-1)).toMatchObject({ event: "end", ok: true, proven: scenario(name).proven });
    expect(outcome).toBe("proven");
  });
}

test("a scenario that ends differently is reported with what was seen, and its later acts do not run", async ({ environment }) => {
  const played: string[] = [];
  const { outcome, events } = await run(environment, {
    ...scenario("gc-pause"),
    acts: ["first", "second"].map((title) => ({
      title,
      actors: ["store"],
      route: "postgres" as const,
      play: async (act) => {
        played.push(title);
        act.expect("two and two are five", 2 + 2, 5);
      },
    })),
  });
  expect(outcome).toBe("differs");
  expect(played).toEqual(["first"]);
  expect(events.at(-1)).toMatchObject({
    event: "end",
    ok: false,
    proven: "The scenario ended differently. first: it is not true that two and two are five; seen: 4",
  });
});

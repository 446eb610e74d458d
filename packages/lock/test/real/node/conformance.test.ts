// The simulated server and a real one are asked the same, step by step, and must answer the same and store the same. Runs of steps are drawn by chance; a failure names the
// seed and shows the shortest run in which the two differ.
import type { RedisNode } from "@palisade/testkit";
import { describe, expect, test } from "@palisade/testkit/vitest";
import fc from "fast-check";
import { Side } from "../../simulation/conformance/side.js";
import { SimulatedServer } from "../../simulation/conformance/simulated-side.js";
import { type Step, sequences } from "../../simulation/conformance/step.js";
import { faithful, type Native, type Natives } from "../../simulation/server/known-scripts.js";
import { extendsAnything, healsOver, releasesAnybody, sealsAnyway, visitsUnnoticed } from "../../simulation/world/broken-scripts.js";
import { RealServer } from "./real-side.js";

/** The first step after which they differ. */
async function difference(real: RealServer, natives: Natives, steps: readonly Step[]): Promise<object | undefined> {
  await real.clear();
  const [ours, theirs] = [new Side(new SimulatedServer(natives)), new Side(real)];
  for (const step of steps) {
    const [simulated, actual] = [await ours.take(step), await theirs.take(step)];
    if (simulated !== actual) return { step, simulated, actual };
  }
  return undefined;
}

interface Search extends fc.Parameters<[readonly Step[]]> {
  /** fast-check's own limit of time would leave a run alone in the middle, and with it the server that it is about to start. */
  readonly withinMs?: number;
}

async function findDifference(
  node: RedisNode,
  natives: Natives,
  { withinMs = Number.POSITIVE_INFINITY, ...params }: Search,
): Promise<fc.RunDetails<[readonly Step[]]>> {
  const real = new RealServer(node);
  const endsAt = performance.now() + withinMs;
  let compared = 0;
  try {
    const property = fc.asyncProperty(sequences, async (steps) => {
      // Out of time: what is left counts as alike, so that no more of it is looked at.
      if (compared > 0 && performance.now() > endsAt) return;
      compared++;
      const found = await difference(real, natives, steps);
      if (found !== undefined) throw new Error(JSON.stringify(found, null, 2));
    });
    return await fc.check(property, params);
  } finally {
    real.close();
  }
}

describe("the simulated server", () => {
  test("answers and stores what a real one answers and stores", async ({ fleet }) => {
    const [node] = (await fleet({ nodes: 1 })).nodes;
    const details = await findDifference(node as RedisNode, faithful, { numRuns: 60, withinMs: 10_000 });
    expect(details.failed, `${fc.defaultReportMessage(details)}\n${String(details.errorInstance)}`).toBe(false);
  });

  test.for<readonly [keyof Natives, Native]>([
    ["seal", sealsAnyway],
    ["release", releasesAnybody],
    ["extend", extendsAnything],
    ["heal", healsOver],
    ["visit", visitsUnnoticed],
  ])("is found out when it answers %s in another way", async ([name, otherwise], { fleet }) => {
    const [node] = (await fleet({ nodes: 1 })).nodes;
    const details = await findDifference(node as RedisNode, { ...faithful, [name]: otherwise }, { numRuns: 400, endOnFailure: true });
    expect(details.failed).toBe(true);
  });
});

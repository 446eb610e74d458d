// Makes a world in which a promise was broken smaller, for as long as it stays broken: fewer faults, processes, callers, resources, a shorter storm.
import fc from "fast-check";
import type { Rules } from "./world/rules.js";
import { type Scenario, scenarios } from "./world/scenario.js";
import { World } from "./world/world.js";

export interface Shrunk {
  readonly scenario: Scenario;
  /** With the seed, what `--replay seed:path` plays. */
  readonly path: string;
  readonly worlds: number;
}

/** undefined if it is not broken at all. */
export async function shrink(
  seed: number,
  { rules, withinMs }: { readonly rules: Rules; readonly withinMs: number },
): Promise<Shrunk | undefined> {
  let worlds = 0;
  const endsAt = performance.now() + withinMs;
  const isKept = fc.asyncProperty(scenarios, async (scenario) => {
    // Out of time: what is left counts as kept, so that nothing smaller is looked for.
    if (worlds > 0 && performance.now() > endsAt) return true;
    worlds++;
    return (await new World(scenario, { rules }).play()).violations.length === 0;
  });
  const { counterexample, counterexamplePath } = await fc.check(isKept, { seed, numRuns: 1 });
  if (counterexample === null || counterexamplePath === null) return undefined;
  return { scenario: counterexample[0], path: counterexamplePath, worlds };
}

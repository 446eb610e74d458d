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

export interface Shrinking {
  readonly rules: Rules;
  /** Asked before every world but the first: whether what was found so far, in so many worlds, is small enough. */
  readonly isEnough: (worlds: number) => boolean;
}

/** undefined if it is not broken at all. */
export async function shrink(seed: number, { rules, isEnough }: Shrinking): Promise<Shrunk | undefined> {
  let worlds = 0;
  const isKept = fc.asyncProperty(scenarios, async (scenario) => {
    // What is left counts as kept, so that nothing smaller is looked for.
    if (worlds > 0 && isEnough(worlds)) return true;
    worlds++;
    return (await new World(scenario, { rules }).play()).violations.length === 0;
  });
  const { counterexample, counterexamplePath } = await fc.check(isKept, { seed, numRuns: 1 });
  if (counterexample === null || counterexamplePath === null) return undefined;
  return { scenario: counterexample[0], path: counterexamplePath, worlds };
}

// Shrinks a world in which a promise was broken: fewer faults, processes, callers and resources,
// and a shorter storm, as long as the promise stays broken.
import fc from "fast-check";
import type { Rules } from "./world/rules.js";
import { type Scenario, scenarios } from "./world/scenario.js";
import { World } from "./world/world.js";

export interface Shrunk {
  readonly scenario: Scenario;
  /** `--replay seed:path` plays this world again. */
  readonly path: string;
  readonly worlds: number;
}

export interface Shrinking {
  readonly rules: Rules;
  /** Called before every world but the first. */
  readonly isEnough: (worlds: number) => boolean;
}

/** undefined: no promise is broken in the world of this seed. */
export async function shrink(seed: number, { rules, isEnough }: Shrinking): Promise<Shrunk | undefined> {
  let worlds = 0;
  const isKept = fc.asyncProperty(scenarios, async (scenario) => {
    // The rest counts as unbroken, so that the search ends.
    if (worlds > 0 && isEnough(worlds)) return true;
    worlds++;
    return (await new World(scenario, { rules }).play()).violations.length === 0;
  });
  const { counterexample, counterexamplePath } = await fc.check(isKept, { seed, numRuns: 1 });
  if (counterexample === null || counterexamplePath === null) return undefined;
  return { scenario: counterexample[0], path: counterexamplePath, worlds };
}

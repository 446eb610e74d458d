// All scenarios, in the order of the list. Decides nothing else.
import type { Scenario } from "./scenario.js";
import { gcPause } from "./scenarios/gc-pause.js";

export const scenarios: readonly Scenario[] = [gcPause];

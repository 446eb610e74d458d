// All scenarios, in the order of the list. Decides nothing else.
import type { Scenario } from "./scenario.js";
import { cronOnce } from "./scenarios/cron-once.js";
import { delayedWrite } from "./scenarios/delayed-write.js";
import { doubleSubmit } from "./scenarios/double-submit.js";
import { eventLoopStall } from "./scenarios/event-loop-stall.js";
import { gcPause } from "./scenarios/gc-pause.js";
import { ownerCheck } from "./scenarios/owner-check.js";
import { threeItems } from "./scenarios/three-items.js";

export const scenarios: readonly Scenario[] = [gcPause, eventLoopStall, delayedWrite, ownerCheck, threeItems, doubleSubmit, cronOnce];

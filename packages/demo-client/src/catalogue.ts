// All scenarios, in the order of the list. Decides nothing else.
import type { Scenario } from "./scenario.js";
import { clockJump } from "./scenarios/clock-jump.js";
import { cronOnce } from "./scenarios/cron-once.js";
import { delayedWrite } from "./scenarios/delayed-write.js";
import { doubleSubmit } from "./scenarios/double-submit.js";
import { eventLoopStall } from "./scenarios/event-loop-stall.js";
import { extend } from "./scenarios/extend.js";
import { gcPause } from "./scenarios/gc-pause.js";
import { majorityDown } from "./scenarios/majority-down.js";
import { nodeAmnesia } from "./scenarios/node-amnesia.js";
import { ownerCheck } from "./scenarios/owner-check.js";
import { replicaFailover } from "./scenarios/replica-failover.js";
import { repliesInFlight } from "./scenarios/replies-in-flight.js";
import { storeFailover } from "./scenarios/store-failover.js";
import { threeItems } from "./scenarios/three-items.js";

export const scenarios: readonly Scenario[] = [
  gcPause,
  eventLoopStall,
  repliesInFlight,
  delayedWrite,
  clockJump,
  nodeAmnesia,
  replicaFailover,
  ownerCheck,
  threeItems,
  doubleSubmit,
  cronOnce,
  majorityDown,
  extend,
  storeFailover,
];

// All scenarios, in the order of the list.
import type { Scenario } from "../engine/act-run.js";
import { clockJump } from "./clock-jump.js";
import { delayedWrite } from "./delayed-write.js";
import { eventLoopStall } from "./event-loop-stall.js";
import { extend } from "./extend.js";
import { gcPause } from "./gc-pause.js";
import { leaderPause } from "./leader-pause.js";
import { majorityDown } from "./majority-down.js";
import { nodeAmnesia } from "./node-amnesia.js";
import { cronOnce, doubleSubmit } from "./once-only.js";
import { otherMembers } from "./other-members.js";
import { ownerCheck } from "./owner-check.js";
import { replicaFailover } from "./replica-failover.js";
import { repliesInFlight } from "./replies-in-flight.js";
import { restoredBackup } from "./restored-backup.js";
import { storeFailover } from "./store-failover.js";
import { threeItems } from "./three-items.js";

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
  restoredBackup,
  leaderPause,
  otherMembers,
];

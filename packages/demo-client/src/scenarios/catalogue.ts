// All scenarios, in the order of the list.
import type { Scenario } from "../engine/act.js";
import { cronOnce, threeItems } from "./contests.js";
import { advisoryLock, delayedWrite, eventLoopStall, gcPause, versionColumn } from "./late-writes.js";
import { extend, ownerCheck, repliesInFlight } from "./leases.js";
import { clockJump, majorityDown, nodeAmnesia, otherMembers, replicaFailover } from "./nodes.js";
import { restoredBackup, storeFailover } from "./stores.js";

export const scenarios: readonly Scenario[] = [
  gcPause,
  versionColumn,
  advisoryLock,
  eventLoopStall,
  repliesInFlight,
  delayedWrite,
  clockJump,
  nodeAmnesia,
  replicaFailover,
  ownerCheck,
  threeItems,
  cronOnce,
  majorityDown,
  extend,
  storeFailover,
  restoredBackup,
  otherMembers,
];

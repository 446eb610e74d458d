// The parts of the lock.
import type { Context, Part } from "../measure/part.js";
import { handoverParts } from "./handover.js";
import { idleWaitersPart } from "./idle-waiters.js";
import { faultyNodesPart } from "./node-faults.js";
import { uncontendedParts } from "./uncontended.js";

export const lockParts: readonly (Part & { run(context: Context): Promise<void> })[] = [
  ...uncontendedParts,
  faultyNodesPart,
  ...handoverParts,
  idleWaitersPart,
];

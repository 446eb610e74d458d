// The parts of the lock.
import type { Context, Part } from "../measure/part.js";
import { forgottenResourcesPart } from "./forgotten-resources.js";
import { handoverParts } from "./handover.js";
import { manyLeasesParts } from "./leases.js";
import { faultyNodesPart } from "./node-faults.js";
import { uncontendedParts } from "./uncontended.js";

export const lockParts: readonly (Part & { run(context: Context): Promise<void> })[] = [
  ...uncontendedParts,
  faultyNodesPart,
  ...handoverParts,
  ...manyLeasesParts,
  forgottenResourcesPart,
];

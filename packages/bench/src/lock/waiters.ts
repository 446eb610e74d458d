// Everybody who can wait for a lock, in the order in which two processes speak of them.
import type { Enter, Waiter } from "./contestant.js";
import { enterPalisade } from "./palisade.js";
import { peers } from "./peers.js";

export const waiters: readonly Enter<Waiter>[] = [enterPalisade, ...peers];

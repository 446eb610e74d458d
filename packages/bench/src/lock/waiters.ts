// The libraries that can wait for a held lock, in one order for both processes of handover.ts.
import type { Open, Waiter } from "./contestant.js";
import { openPalisade } from "./palisade.js";
import { peers } from "./peers.js";

export const waiters: readonly Open<Waiter>[] = [openPalisade, ...peers];

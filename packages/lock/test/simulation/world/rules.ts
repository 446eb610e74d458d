// Which of the protocol's rules hold in a world. All of them, except in a control, which has one switched off to see that the damage is found. Rules are switched off from
// outside: other scripts on the simulated servers, another policy, other callers. The lock itself knows nothing of it.
import type { Policy } from "#lock/options/policy.js";
import { faithful, type Natives } from "../server/known-scripts.js";
import type { Memory } from "../server/memory.js";
import type { SimServer } from "../server/sim-server.js";

export interface Rules {
  readonly natives: Natives;
  readonly policy: (policy: Policy) => Policy;
  /** From when on a caller counts its lease. */
  readonly countsFrom: "first byte" | "last reply";
  /** What is done to a server that begins a new life, or a new memory; `before` is what it knew. */
  readonly onNewLife?: (server: SimServer, before: Memory) => void;
}

export const allRules: Rules = { natives: faithful, policy: (policy) => policy, countsFrom: "first byte" };

// The policy of a locker for as many nodes as are members now.
import { majority } from "../quorum/tally.js";
import type { Policy } from "./policy.js";

/** A stricter quorum than the majority stays as strict as the number of nodes allows. */
export function policyFor(size: number, configured: Policy): Policy {
  const { quorum } = configured;
  if (size === configured.size) return configured;
  const isMajority = quorum === majority(configured.size);
  return Object.freeze({ ...configured, size, quorum: isMajority ? majority(size) : Math.max(majority(size), Math.min(quorum, size)) });
}

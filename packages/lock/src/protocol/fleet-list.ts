// The list of the fleets among which the resources of a namespace are spread, as the nodes of each
// fleet have agreed on it, and what a locker and an operator ask of one fleet about it.
import type { ChangeLimits } from "./change-limits.js";

/** One fleet of the list. */
interface ListedFleet {
  readonly name: string;
  /** Given to it when it was founded; empty while fleets that are founded together wait. */
  readonly id: string;
}

export interface FleetList {
  /**
   * Rises by one with each change. 0: of fleets that are founded together, and not used before all
   * of them say the same.
   */
  readonly version: number;
  /** In the order of their names. */
  readonly fleets: readonly ListedFleet[];
  /** What the list before it did not have, or had besides. */
  readonly added?: string;
  readonly removed?: string;
  /** Of version 0: which fleets with which nodes are founded together. */
  readonly key?: string;
}

/** How one fleet stands, by the word of a quorum of its nodes. */
export interface Standing {
  readonly id: string;
  /** undefined: it is by itself. */
  readonly list: FleetList | undefined;
  /** No token that any of its earlier lists helped to issue is above it. */
  readonly floor: number;
  readonly marks: ReadonlyMap<string, number>;
  /** Until every lease is over that was granted before it had this list. */
  readonly outwaitMs: number;
  /** The longest lease that may still run. */
  readonly maxTtlMs: number;
  /** When such a lease is over that was granted now: a little more. */
  readonly longestMs: number;
  readonly members: readonly string[];
}

/** One step of one fleet: only if its list still is the one that the step was planned for. */
export interface ListStep {
  readonly from: FleetList | undefined;
  readonly to: FleetList;
}

/**
 * The longest lease of one fleet, whose list still has to be the one of which every fleet has been
 * told.
 */
export interface LongestStep {
  readonly from: FleetList | undefined;
  readonly maxTtlMs: number;
}

export interface FleetListing {
  readonly id: string | undefined;
  /** As this locker knows it; votes of another generation than that of this list do not count. */
  readonly list: FleetList | undefined;
  /** How many times a node of it was reached, for the first time or again. */
  readonly timesMet: number;
  /** Most of its nodes are up now, and not most of them without a break since that meeting. */
  isBackSince(timesMet: number): boolean;
  /**
   * Reads the nodes' records anew. Resolves when most members have said that they vote in the
   * generation which is known then, so that no newer list was in use when this began; or when every
   * node has answered or could not be asked. Never rejects.
   */
  lookAgain(): Promise<void>;
  /** undefined: too few nodes answered. Never rejects. */
  standing(): Promise<Standing | undefined>;
  /** Resolves when that is so, or the list is another one than `from`. */
  change(step: ListStep | LongestStep, limits: ChangeLimits): Promise<void>;
}

/** Negative if `a` came before `b`. Two of one version, begun at once, have an order too. */
export function compareLists(a: FleetList | undefined, b: FleetList | undefined): number {
  if (a === b) return 0;
  const byVersion = (a?.version ?? -1) - (b?.version ?? -1);
  if (byVersion !== 0) return byVersion;
  const [one, other] = [contentOf(a), contentOf(b)];
  return one === other ? 0 : one < other ? -1 : 1;
}

/** All that tells it from other lists, as text. */
export function contentOf(list: FleetList | undefined): string {
  if (list === undefined) return "";
  const known = contents.get(list);
  if (known !== undefined) return known;
  const { version, fleets, added = "", removed = "", key = "" } = list;
  const content = JSON.stringify([version, fleets.map(({ name, id }) => [name, id]), added, removed, key]);
  contents.set(list, content);
  return content;
}

const contents = new WeakMap<FleetList, string>();

export function namesIn(list: FleetList | undefined): readonly string[] {
  return list === undefined ? [] : list.fleets.map(({ name }) => name);
}

// Several fleets behind one locker: how they stand, and how their list is changed.

/** One fleet, as this locker finds it now. */
export interface FleetInspection {
  /** As it is configured; empty where the locker was given nodes. */
  readonly name: string;
  /**
   * `used`: resources belong to it. `unused`: it is not in the list. `changing`: it does not have
   * the newest list yet. `silent`: too few of its nodes answered.
   */
  readonly state: "used" | "unused" | "changing" | "silent";
  /** Version of the list that its nodes have; absent where they have none, or do not answer. */
  readonly version?: number;
  /** Of its members; absent where they do not answer. */
  readonly generation?: number;
  /** Their addresses. */
  readonly members: readonly string[];
}

/** The fleets among which the resources of the namespace are spread. */
export interface FleetsState {
  /** Rises with each change of the list; 0: there is none, and one fleet is by itself. */
  readonly version: number;
  /** All that this locker was given, in the order of their names. */
  readonly fleets: readonly FleetInspection[];
}

/**
 * One change of the list of fleets. `name`: a fleet that is by itself gets its name, as the first
 * of a list. `lost`: the servers of these fleets are off and will not come back with what they
 * stored; and the longest lease that any of them ever allowed, where the others do not know that.
 * Several that are lost at once are taken away by one call.
 */
export type FleetsChange =
  | { readonly name: string }
  | { readonly add: string }
  | { readonly remove: string | readonly string[]; readonly lost?: boolean | { readonly maxTtlMs: number } };

// The members of a fleet, as its nodes store them. Each change makes a new generation; which set of
// members has a number is agreed upon by a majority of the generation before it (ADR 0061), so two
// rosters with one number are the same.
import { createHash } from "node:crypto";
import { contentOf, type FleetList, namesIn } from "../protocol/fleet-list.js";

export interface Member {
  /** Stays the same when the node has lost its memory and was rebuilt. */
  readonly id: string;
  /**
   * As the locker named it that founded the fleet or added the member; other lockers may have
   * another way.
   */
  readonly address: string;
  /** Since which generation without a break. */
  readonly since: number;
  /**
   * It took another member's place then, so it has to outwait the leases which that one granted.
   */
  readonly inPlaceOf?: string;
}

export interface Roster {
  readonly generation: number;
  readonly members: readonly Member[];
  /** The longest lease. */
  readonly maxTtlMs: number;
  /** That of the generation before, whose leases may still run. */
  readonly formerMaxTtlMs: number;
  /** Among which fleets resources are spread; absent where the fleet is by itself. */
  readonly fleets?: FleetList;
}

const LIST = "fleets:";

/**
 * The list of fleets also stands among the members: a version of the lock that knows no lists finds
 * a member there to which no way leads, and refuses the fleet.
 */
export function writeRoster(roster: Roster): string {
  const { fleets, generation, members } = roster;
  if (fleets === undefined) return JSON.stringify(roster);
  const address = `(one of the fleets ${namesIn(fleets).join(" ")}: upgrade this process)`;
  return JSON.stringify({ ...roster, members: [...members, { id: listId(fleets), address, since: generation }] });
}

function listId(fleets: FleetList): string {
  return `${LIST}${createHash("sha256").update(contentOf(fleets)).digest("base64url").slice(0, 16)}`;
}

/** What a node has stored; undefined if it is no roster. */
export function readRoster(text: string): Roster | undefined {
  try {
    const roster = JSON.parse(text) as Roster;
    const isWhole = Number.isInteger(roster.generation) && roster.members.every(({ id, address }) => id !== "" && address !== "");
    return isWhole ? { ...roster, members: roster.members.filter(({ id }) => !id.startsWith(LIST)) } : undefined;
  } catch {
    return undefined;
  }
}

/** The word that every vote of this generation carries. Addresses are no part of it. */
export function generationOf({ generation, members, maxTtlMs, fleets }: Roster): string {
  // Of a fleet in format 1, whose members no node has stored.
  if (generation === 0) return "";
  const ids = [...members.map(({ id }) => id), ...(fleets === undefined ? [] : [listId(fleets)])].sort();
  const hash = createHash("sha256")
    .update(`${ids.join(" ")} ${maxTtlMs}`)
    .digest("base64url")
    .slice(0, 8);
  return `${generation}-${hash}`;
}

/** The longest lease that may still run under this generation. */
export function longestLeaseMs({ maxTtlMs, formerMaxTtlMs }: Roster): number {
  return Math.max(maxTtlMs, formerMaxTtlMs);
}

/**
 * How long after the loss of a memory every lease it may have granted is over (L2): clocks of
 * servers may run 2 % apart.
 */
export function forgottenLeasesEndMs(maxTtlMs: number): number {
  return maxTtlMs + Math.ceil(maxTtlMs * 0.02) + 20;
}

/** A change by the operator. Addresses are those of the roster, or of the locker's own list. */
export type RosterChange =
  | { readonly add: Pick<Member, "id" | "address"> }
  | { readonly remove: string }
  | { readonly replace: string; readonly by: Pick<Member, "id" | "address"> }
  | { readonly maxTtlMs: number }
  | { readonly fleets: FleetList };

/** The next generation; `remove` and `replace` name the id of a member. */
export function changed(roster: Roster, change: RosterChange): Roster {
  const generation = roster.generation + 1;
  const next = { ...roster, generation, formerMaxTtlMs: roster.maxTtlMs };
  if ("fleets" in change) return { ...next, fleets: change.fleets };
  if ("maxTtlMs" in change) return { ...next, maxTtlMs: change.maxTtlMs };
  if ("add" in change) return { ...next, members: [...roster.members, { ...change.add, since: generation }] };
  if ("remove" in change) return { ...next, members: roster.members.filter(({ id }) => id !== change.remove) };
  const { replace, by } = change;
  const members = roster.members.map((member) => (member.id === replace ? { ...by, since: generation, inPlaceOf: replace } : member));
  return { ...next, members };
}

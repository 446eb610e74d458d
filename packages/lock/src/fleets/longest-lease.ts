// How long the leases of each fleet may last, as every fleet of the list knows it: a mark on the
// nodes of all of them, raised before a longer lease can be granted. So the leases of a fleet that
// is lost can be outwaited, whatever it allowed (L2). Why marks: docs/adr/0112.

import { nameAll } from "../lease/messages.js";
import type { Clock } from "../platform/clock.js";
import type { ChangeLimits } from "../protocol/change-limits.js";
import { LockError } from "../protocol/errors.js";
import type { Fleet, FleetMembers } from "../protocol/fleet.js";
import { type FleetList, namesIn, type Standing } from "../protocol/fleet-list.js";
import { ChangeWait } from "../waiting/change-wait.js";

const AGAIN_MS = 50;

/** By name; undefined: too few nodes of that fleet answered. */
export type Standings = ReadonlyMap<string, Standing | undefined>;

export interface Told {
  readonly fleet: Fleet;
  readonly locker: { carryMark(name: string, atLeast: number): Promise<void> };
}

/** Ids are never used again, so a fleet that takes the name of a former one begins anew. */
export function markOfLongest(id: string): string {
  return `palisade/longest-lease/${id}`;
}

/** What this fleet knows of the one with that id; 0: nothing. */
export function longestKnown(standing: Standing | undefined, id: string): number {
  return standing?.marks.get(markOfLongest(id)) ?? 0;
}

/** Tells each fleet of the list of all of them, where one does not know it. */
export async function tellLongest(parts: ReadonlyMap<string, Told>, standings: Standings, list: FleetList | undefined): Promise<void> {
  // Servers of a lost fleet may answer without its memory, as another one.
  const there = (list?.fleets ?? []).flatMap(({ name, id }) => (standings.get(name)?.id === id ? [{ name, id }] : []));
  for (const { name } of there) {
    const [part, standing] = [parts.get(name), standings.get(name)];
    for (const about of there) {
      const maxTtlMs = standings.get(about.name)?.maxTtlMs ?? 0;
      if (longestKnown(standing, about.id) < maxTtlMs) await part?.locker.carryMark(markOfLongest(about.id), maxTtlMs);
    }
  }
}

interface LongestChange {
  readonly parts: ReadonlyMap<string, Told>;
  readonly clock: Clock;
  readonly name: string;
  readonly maxTtlMs: number;
  readonly limits: ChangeLimits;
}

/**
 * Changes the longest lease of one fleet: first every fleet of its list is told, and it is changed
 * only if the list is still that one.
 */
export async function changeLongest({ parts, clock, name, maxTtlMs, limits }: LongestChange): Promise<FleetMembers> {
  const wait = new ChangeWait(clock, limits);
  const own = parts.get(name);
  if (own === undefined) throw new RangeError(`${name} is no fleet of this locker`);
  const { listing } = own.fleet;
  for (;;) {
    await listing.lookAgain();
    const { id, list } = listing;
    if (id === undefined) throw new LockError("LOCK_NO_QUORUM", `too few nodes of ${name} answer`);
    const missing = namesIn(list).filter((other) => !parts.has(other));
    if (missing.length > 0)
      throw new LockError(
        "FLEET_MISMATCH",
        `the list of fleets has ${nameAll(missing)} as well; add what is missing to the fleets of this process`,
      );
    for (const each of new Set([name, ...namesIn(list)])) await parts.get(each)?.locker.carryMark(markOfLongest(id), maxTtlMs);
    await listing.change({ from: list, maxTtlMs }, wait.limits);
    const members = own.fleet.members();
    if (members?.maxTtlMs === maxTtlMs) return members;
    const changed = { why: "the list of fleets changed again and again", waitMs: AGAIN_MS, outwaits: false };
    if (!(await wait.for(changed)))
      throw new LockError("LOCK_NO_QUORUM", `the longest lease was not changed within waitMs: ${changed.why}`);
  }
}

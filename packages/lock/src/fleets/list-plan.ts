// The next step of a change of the list of fleets, from how each fleet stands. Pure. A fleet grants
// what belongs to it by its own list, so at no moment may the lists of two fleets give one resource
// to both (F1). A change adds one fleet or takes one away. First every fleet to which nothing moves
// gets the new list; when all leases are over that were granted before, the fleets to which
// something moves get it, above the tokens of all the others. Any locker finds the same next step,
// so it carries on where another has stopped. Why that is enough: docs/adr/0107, spec/fleets.tla.

import { compareLists, contentOf, type FleetList, type ListStep, namesIn, type Standing } from "../protocol/fleet-list.js";
import type { FleetsChange } from "../protocol/fleets.js";
import { forgottenLeasesEndMs } from "../redis/roster.js";
import { longestKnown, type Standings } from "./longest-lease.js";

type Lists = ReadonlyMap<string, { readonly list: FleetList | undefined } | undefined>;

export type Plan =
  | { readonly kind: "done" }
  /** Each fleet by itself; in any order, or at once. */
  | { readonly kind: "close"; readonly steps: ReadonlyMap<string, ListStep> }
  /** After the floor and the marks of the others have been carried there. */
  | {
      readonly kind: "open";
      readonly steps: ReadonlyMap<string, ListStep>;
      readonly floor: number;
      readonly marks: ReadonlyMap<string, number>;
    }
  | { readonly kind: "wait"; readonly why: string; readonly waitMs: number }
  /** Not possible, whatever is waited for. */
  | { readonly kind: "refused"; readonly why: string };

const POLL_MS = 50;

/** `lostForMs`: since when the operator has said that the fleet taken away is lost. */
export function planChange(standings: Standings, change: FleetsChange, lostForMs: number): Plan {
  if ("name" in change) return planName(standings, change.name);
  const newest = newestOf(standings);
  if (newest === undefined || newest.version === 0) return waitFor(standings, "no fleet has a list yet: name the first one");
  const subject = "add" in change ? change.add : change.remove;
  const isThere = namesIn(newest).includes(subject);
  const isWanted = "add" in change;
  if (isThere === isWanted) return planStep(standings, { list: newest, before: undefined, change, lostForMs });
  const next = isWanted ? withFleet(standings, newest, subject) : withoutFleet(newest, subject);
  return "kind" in next ? next : planStep(standings, { list: next, before: newest, change, lostForMs });
}

/** The newest of the lists that the fleets have. */
export function newestOf(standings: Lists): FleetList | undefined {
  let newest: FleetList | undefined;
  for (const standing of standings.values()) if (compareLists(standing?.list, newest) > 0) newest = standing?.list;
  return newest;
}

/** Fleets that were founded together, once all of them say so. */
export function planTogether(standings: Standings): Plan {
  const all = [...standings];
  const lists = new Set(all.map(([, standing]) => (standing?.list?.version === 0 ? contentOf(standing.list) : "")));
  const newest = newestOf(standings);
  const fleets = all.map(([name, standing]) => ({ name, id: standing?.id ?? "" }));
  const together: FleetList = { version: 1, fleets };
  const isBegun = newest?.version === 1 && contentOf(newest) === contentOf(together);
  const others = all.filter(([, standing]) => contentOf(standing?.list) !== contentOf(together));
  if (isBegun && others.length === 0) return { kind: "done" };
  const silent = all.filter(([, standing]) => standing === undefined).map(([name]) => name);
  if (silent.length > 0) return wait(`new fleets are used only when all of them can be reached; ${silent.join(" and ")} cannot`);
  if (!others.every(([, standing]) => standing?.list?.version === 0) || (!isBegun && (lists.size > 1 || newest?.version !== 0)))
    return refused(`they were not founded together: ${all.map(([name, standing]) => `${name} ${describe(standing)}`).join(", ")}`);
  return { kind: "open", steps: stepsTo(together, others), floor: 0, marks: new Map() };
}

function planName(standings: Standings, name: string): Plan {
  const standing = standings.get(name);
  if (standing === undefined) return silent([name]);
  const { list, id } = standing;
  if (list?.version === 1 && namesIn(list).join() === name) return { kind: "done" };
  if (list !== undefined) return refused(`${name} ${describe(standing)} already`);
  const listed = [...standings].find(([, other]) => (other?.list?.version ?? 0) > 0);
  if (listed !== undefined) return refused(`${listed[0]} ${describe(listed[1])}: add ${name} to it`);
  return { kind: "close", steps: stepsTo({ version: 1, fleets: [{ name, id }] }, [[name, standing]]) };
}

function withFleet(standings: Standings, newest: FleetList, name: string): FleetList | Plan {
  const standing = standings.get(name);
  if (standing === undefined) return silent([name]);
  const { id, list } = standing;
  const { removed: _, added: __, ...rest } = newest;
  const fleets = [...newest.fleets, { name, id }].sort((one, other) => (one.name < other.name ? -1 : 1));
  const next = { ...rest, version: newest.version + 1, fleets, added: name };
  if (list !== undefined && list.version > 0 && compareLists(list, newest) === 0) return next;
  // Whatever used it by itself stops now, and has stopped for as long as a lease may last when it
  // gets the list in which it is.
  if (list?.fleets.some((one) => one.id === id) === true && list.version > 0) {
    if (list.version >= newest.version || !isStepFrom(list, next)) return refused(`${name} ${describe(standing)}, which is another list`);
  }
  return { kind: "close", steps: stepsTo(newest, [[name, standing]]) };
}

function withoutFleet(newest: FleetList, name: string): FleetList | Plan {
  const fleets = newest.fleets.filter((fleet) => fleet.name !== name);
  if (fleets.length === 0) return refused(`${name} is the only fleet`);
  const { removed: _, added: __, ...rest } = newest;
  return { ...rest, version: newest.version + 1, fleets, removed: name };
}

interface Target {
  readonly list: FleetList;
  /** Where this would begin the change. */
  readonly before: FleetList | undefined;
  readonly change: FleetsChange;
  readonly lostForMs: number;
}

function planStep(standings: Standings, { list, before, change, lostForMs }: Target): Plan {
  const isGaining = (name: string): boolean =>
    isAway(standings.get(name)?.list, name, list) ||
    (list.added === undefined ? list.removed !== undefined && namesIn(list).includes(name) : name === list.added);
  const known = concerned(standings, list);
  const lost = lostIn(standings, change);
  if (lost !== undefined && "kind" in lost) return lost;
  const others = known.filter((name) => !isGaining(name) && name !== lost?.name);
  const gaining = known.filter((name) => isGaining(name) && name !== lost?.name);
  const missing = [...others, ...gaining].filter((name) => standings.get(name) === undefined);
  const has = (name: string): boolean => compareLists(standings.get(name)?.list, list) === 0;
  if (missing.length === 0 && [...others, ...gaining].every(has)) return { kind: "done" };
  const far = [...others, ...gaining].find((name) => {
    const from = standings.get(name)?.list;
    return !missing.includes(name) && !isStepFrom(from, list) && !(gaining.includes(name) && isWithout(from, list));
  });
  if (far !== undefined) return refused(unfinished(standings, far));
  const behind = others.filter((name) => standings.get(name) !== undefined && !has(name));
  const grown = behind.find((name) => namesIn(list).includes(name) && gainsFrom(standings.get(name)?.list, list));
  if (grown !== undefined) return refused(unfinished(standings, grown));
  if (missing.length > 0 && before !== undefined) return silent(missing);
  if (behind.length > 0) return { kind: "close", steps: stepsTo(list, entriesOf(standings, behind)) };
  const absent = others.filter((name) => standings.get(name) === undefined);
  if (absent.length > 0) return silent(absent);
  return planOpening(standings, { list, others, gaining: gaining.filter((name) => !has(name)), lost, lostForMs });
}

interface Opening {
  readonly list: FleetList;
  readonly others: readonly string[];
  readonly gaining: readonly string[];
  readonly lost: Lost | undefined;
  readonly lostForMs: number;
}

interface Lost {
  readonly name: string;
  /** A lease that it granted just before is over after so long. */
  readonly longestMs: number;
}

/**
 * The fleet that the operator says is lost, and the longest lease that any of the others knows of
 * it, or that the operator knows.
 */
function lostIn(standings: Standings, change: FleetsChange): Lost | Plan | undefined {
  if (!("remove" in change) || change.lost === undefined || change.lost === false) return undefined;
  const name = change.remove;
  if (standings.get(name) !== undefined) return refused(`${name} answers, so it is not lost: remove it as it is`);
  const seen = [...standings.values()];
  const id = seen.flatMap((standing) => standing?.list?.fleets ?? []).find((fleet) => fleet.name === name)?.id;
  const told = id === undefined ? 0 : Math.max(...seen.map((standing) => longestKnown(standing, id)));
  const said = change.lost === true ? 0 : change.lost.maxTtlMs;
  // Without an id the list is without it on all that answer: nothing of it is waited for any more.
  if (id !== undefined && Math.max(told, said) === 0)
    return refused(
      `how long leases of ${name} may last is not known to the others, since an older version put it into the list: say the longest that it ever allowed (lost: { maxTtlMs }, or --max-ttl)`,
    );
  const own = forgottenLeasesEndMs(Math.max(told, said));
  return { name, longestMs: Math.max(own, ...seen.map((standing) => standing?.longestMs ?? 0)) };
}

function planOpening(standings: Standings, { list, others, gaining, lost, lostForMs }: Opening): Plan {
  const seen = gaining.filter((name) => standings.get(name) !== undefined);
  if (seen.length === 0) return silent(gaining);
  const lostMs = lost === undefined ? 0 : lost.longestMs - lostForMs;
  const outwaitMs = Math.max(lostMs, ...others.map((name) => standings.get(name)?.outwaitMs ?? 0));
  if (outwaitMs > 0)
    return { kind: "wait", why: `leases that were granted before may run for ${Math.ceil(outwaitMs)} ms more`, waitMs: outwaitMs };
  const marks = new Map<string, number>();
  let floor = 0;
  for (const name of lost === undefined ? others : [...standings.keys()]) {
    floor = Math.max(floor, standings.get(name)?.floor ?? 0);
    for (const [mark, number] of standings.get(name)?.marks ?? []) marks.set(mark, Math.max(number, marks.get(mark) ?? 0));
  }
  return { kind: "open", steps: stepsTo(list, entriesOf(standings, seen)), floor, marks };
}

/** All that are in the list, were in the one before it, or are in one that any of these has. */
export function concerned(standings: Lists, list: FleetList): readonly string[] {
  const names = new Set([...namesIn(list), ...(list.removed === undefined ? [] : [list.removed])]);
  for (const name of names) for (const other of namesIn(standings.get(name)?.list)) names.add(other);
  return [...names].sort();
}

/** Between its list and the next one at most one fleet came or went. */
function isStepFrom(from: FleetList | undefined, to: FleetList): boolean {
  if (from === undefined || from.version === 0) return false;
  const ids = (list: FleetList): readonly string[] => list.fleets.map(({ name, id }) => `${name} ${id}`);
  const [old, next] = [ids(from), ids(to)];
  return old.filter((id) => !next.includes(id)).length + next.filter((id) => !old.includes(id)).length <= 1;
}

/** Whatever it serves by the first list it serves by the second as well. */
function isWithout(from: FleetList | undefined, to: FleetList): boolean {
  if (from === undefined || from.version === 0) return false;
  return to.fleets.every(({ name, id }) => from.fleets.some((one) => one.name === name && one.id === id));
}

/** Taken away by a change begun at once with another: others may serve what was its own. */
function isAway(from: FleetList | undefined, name: string, to: FleetList): boolean {
  return from !== undefined && namesIn(to).includes(name) && !namesIn(from).includes(name);
}

function gainsFrom(from: FleetList | undefined, to: FleetList): boolean {
  return namesIn(from).some((name) => !namesIn(to).includes(name));
}

type Named = readonly [name: string, standing: Standing | undefined];

function entriesOf(standings: Standings, names: readonly string[]): readonly Named[] {
  return names.map((name) => [name, standings.get(name)]);
}

function stepsTo(to: FleetList, fleets: readonly Named[]): ReadonlyMap<string, ListStep> {
  return new Map(fleets.map(([name, standing]) => [name, { from: standing?.list, to }]));
}

function describe(standing: Standing | undefined): string {
  if (standing === undefined) return "cannot be asked";
  const { list } = standing;
  if (list === undefined) return "is by itself";
  return list.version === 0 ? `waits for ${namesIn(list).join(", ")}` : `has version ${list.version} (${namesIn(list).join(", ")})`;
}

function unfinished(standings: Standings, name: string): string {
  return `${name} ${describe(standings.get(name))}: another change has begun and is not finished; finish it by repeating it, or take it back first`;
}

const refused = (why: string): Plan => ({ kind: "refused", why });
const wait = (why: string): Plan => ({ kind: "wait", why, waitMs: POLL_MS });
const silent = (names: readonly string[]): Plan => wait(`too few nodes of ${names.join(" and ")} answer`);

function waitFor(standings: Standings, why: string): Plan {
  return [...standings.values()].includes(undefined) ? wait(`too few nodes answer to tell the list`) : refused(why);
}

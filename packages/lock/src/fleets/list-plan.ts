// The next step of a change of the list of fleets, from how each fleet stands. Pure. A fleet grants
// what belongs to it by its own list, so at no moment may the lists of two fleets give one resource
// to both (F1). A change adds one fleet or takes one away. First every fleet to which nothing moves
// gets the new list; when all leases are over that were granted before, the fleets to which
// something moves get it, above the tokens of all the others. Any locker finds the same next step,
// so it carries on where another has stopped. Why that is enough: docs/adr/0107, spec/fleets.tla.

import { nameAll } from "../lease/messages.js";
import { compareLists, contentOf, type FleetList, type ListStep, namesIn, type Standing } from "../protocol/fleet-list.js";
import type { FleetsChange } from "../protocol/fleets.js";
import { forgottenLeasesEndMs } from "../redis/roster.js";
import type { Wait } from "../waiting/change-wait.js";
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
  | ({ readonly kind: "wait" } & Wait)
  /** Not possible, whatever is waited for. */
  | { readonly kind: "refused"; readonly why: string };

const POLL_MS = 50;

/** `lostForMs`: since when the operator has said that the fleets taken away are lost. */
export function planChange(standings: Standings, change: FleetsChange, lostForMs: number): Plan {
  if ("name" in change) return planName(standings, change.name);
  const newest = newestOf(standings);
  if (newest === undefined || newest.version === 0) return waitFor(standings, "no fleet has a list yet: name the first one");
  const isWanted = "add" in change;
  const [subject = "", ...more] = isWanted ? [change.add] : namesOf(change.remove);
  if (!isWanted && change.lost !== undefined && change.lost !== false) {
    const lost = lostIn(standings, newest, { names: [subject, ...more], longest: change.lost, forMs: lostForMs });
    return "kind" in lost ? lost : planWithout(standings, newest, lost);
  }
  const isThere = namesIn(newest).includes(subject);
  if (isThere === isWanted) return planStep(standings, { list: newest, before: undefined, lost: NONE });
  const next = isWanted ? withFleet(standings, newest, subject) : withoutFleet(newest, subject);
  return "kind" in next ? next : planStep(standings, { list: next, before: newest, lost: NONE });
}

export function namesOf(remove: string | readonly string[]): readonly string[] {
  return typeof remove === "string" ? [remove] : remove;
}

/**
 * What was begun comes first, without the lost ones: nobody else could finish it or take it back,
 * both of which would wait for them. Then one after the other is taken out of the list.
 */
function planWithout(standings: Standings, newest: FleetList, lost: Lost): Plan {
  const begun = planStep(standings, { list: newest, before: undefined, lost });
  const name = lost.names.find((each) => namesIn(newest).includes(each));
  if (name === undefined || (begun.kind !== "done" && begun.kind !== "refused")) return begun;
  const next = withoutFleet(newest, name);
  return "kind" in next ? next : planStep(standings, { list: next, before: newest, lost });
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
  if (all.some(([, standing]) => isApart(standings, standing?.list))) return refused(foundedApart(all));
  if (!others.every(([, standing]) => standing?.list?.version === 0) || (!isBegun && (lists.size > 1 || newest?.version !== 0)))
    return refused(`they were not founded together: ${all.map(([name, standing]) => `${name} ${describe(standing)}`).join(", ")}`);
  return { kind: "open", steps: stepsTo(together, others), floor: 0, marks: new Map() };
}

/** Founded beside one of the same names with other addresses: neither was ever used. */
function isApart(standings: Standings, list: FleetList | undefined): boolean {
  if (list?.version !== 0) return false;
  const others = namesIn(list).map((name) => standings.get(name)?.list);
  return others.some((other) => other?.version === 0 && namesIn(other).join() === namesIn(list).join() && other.key !== list.key);
}

function foundedApart(all: readonly Named[]): string {
  const addresses = all.map(([name, standing]) => `${name} by one to which its nodes are ${standing?.members.join(", ")}`);
  return `they were founded by processes that were given different addresses: ${addresses.join("; ")}`;
}

function planName(standings: Standings, name: string): Plan {
  const standing = standings.get(name);
  if (standing === undefined) return silent([name]);
  const { list, id } = standing;
  if (list?.version === 1 && namesIn(list).join() === name) return { kind: "done" };
  if (list !== undefined && !isApart(standings, list)) return refused(`${name} ${describe(standing)} already`);
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
  readonly lost: Lost;
}

function planStep(standings: Standings, { list, before, lost }: Target): Plan {
  const isGaining = (name: string): boolean =>
    isAway(standings.get(name)?.list, name, list) ||
    (list.added === undefined ? list.removed !== undefined && namesIn(list).includes(name) : name === list.added);
  const known = concerned(standings, list).filter((name) => !lost.names.includes(name));
  const others = known.filter((name) => !isGaining(name));
  const gaining = known.filter(isGaining);
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
  if (missing.length > 0 && before !== undefined) return silent(missing, lost);
  if (behind.length > 0) return { kind: "close", steps: stepsTo(list, entriesOf(standings, behind)) };
  const absent = others.filter((name) => standings.get(name) === undefined);
  if (absent.length > 0) return silent(absent, lost);
  return planOpening(standings, { list, others, gaining: gaining.filter((name) => !has(name)), lost });
}

interface Opening {
  readonly list: FleetList;
  readonly others: readonly string[];
  readonly gaining: readonly string[];
  readonly lost: Lost;
}

/** The fleets that the operator says are lost. */
interface Lost {
  readonly names: readonly string[];
  /** Until every lease is over that one of them may have granted. */
  readonly outwaitMs: number;
}

const NONE: Lost = { names: [], outwaitMs: 0 };

interface SaidLost {
  readonly names: readonly string[];
  readonly longest: true | { readonly maxTtlMs: number };
  /** Since when that has been said. */
  readonly forMs: number;
}

/**
 * Their leases last as long as any of the others knows, or as the operator says: the longer of
 * both. A server that came back without its memory is no part of the fleet that it was.
 */
function lostIn(standings: Standings, newest: FleetList, { names, longest, forMs }: SaidLost): Lost | Plan {
  const left = new Map([...standings].filter(([name]) => !names.includes(name)));
  if (namesIn(newest).every((name) => names.includes(name)))
    return refused(
      `${nameAll(namesIn(newest))} are all fleets of the list: none is left that knows its tokens, so new ones have to be founded`,
    );
  const seen = [...left.values()];
  const said = longest === true ? 0 : longest.maxTtlMs;
  let longestMs = Math.max(said, ...seen.map((standing) => standing?.longestMs ?? 0));
  for (const name of names) {
    const ids = [newest, ...seen.map((standing) => standing?.list)]
      .flatMap((list) => list?.fleets ?? [])
      .filter((fleet) => fleet.name === name);
    if (ids.some(({ id }) => id === standings.get(name)?.id)) return refused(`${name} answers, so it is not lost: remove it as it is`);
    const told = ids.map(({ id }) => Math.max(...seen.map((standing) => longestKnown(standing, id))));
    // Without an id no list has it, of those that answer: nothing of it is waited for any more.
    if (said === 0 && told.includes(0)) return refused(unknownLongest(name));
    longestMs = Math.max(longestMs, ...[said, ...told].map(forgottenLeasesEndMs));
  }
  return { names, outwaitMs: longestMs - forMs };
}

function unknownLongest(name: string): string {
  return `how long leases of ${name} may last is not known to the others, since an older version put it into the list: say the longest that it ever allowed (lost: { maxTtlMs }, or --max-ttl)`;
}

function planOpening(standings: Standings, { list, others, gaining, lost }: Opening): Plan {
  const seen = gaining.filter((name) => standings.get(name) !== undefined);
  if (seen.length === 0) return silent(gaining);
  const outwaitMs = Math.max(lost.outwaitMs, ...others.map((name) => standings.get(name)?.outwaitMs ?? 0));
  if (outwaitMs > 0) return { kind: "wait", why: "leases that were granted before may run", waitMs: outwaitMs, outwaits: true };
  const marks = new Map<string, number>();
  let floor = 0;
  for (const name of lost.names.length === 0 ? others : [...standings.keys()]) {
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
const wait = (why: string): Plan => ({ kind: "wait", why, waitMs: POLL_MS, outwaits: false });
const silent = (names: readonly string[], lost = NONE): Plan =>
  wait(
    `too few nodes of ${names.join(" and ")} answer${lost.names.length === 0 ? "" : `; what is lost besides ${lost.names.join(" and ")} has to be named with ${lost.names.length === 1 ? "it" : "them"}`}`,
  );

function waitFor(standings: Standings, why: string): Plan {
  return [...standings.values()].includes(undefined) ? wait(`too few nodes answer to tell the list`) : refused(why);
}

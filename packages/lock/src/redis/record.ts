// A node's record: its id, for which run of its server it was admitted, the members of its fleet,
// and so on; and the scripts that read and change it, their arguments and replies. When they are
// called is decided in admission/.
import { createHash } from "node:crypto";
import { GarbageReply } from "../protocol/verbs.js";
import type { ScriptCall } from "./calls.js";
import { scripts } from "./lua.generated.js";

// The field `admitted`, which the scripts cut at the same places: how the node stands, the run id
// of the server for which it was admitted, the counter floor below which none of its counters is
// believed, the generation of the fleet's members that it votes in, and the epoch. A script call that
// names the whole field as it stands need not be answered with it.

const RUN_ID_LENGTH = 40;
const FLOOR_LENGTH = 15;
const GENERATION_END = ":";

/**
 * How the node stands: `votes`, or `closed`: it has accepted the next generation and does not vote
 * until that opens.
 */
type Standing = "votes" | "closed";

/** In what a node votes: its ballots count only where both are as they were noted. */
export interface Term {
  readonly generation: string;
  /** The generation and the random word of the last admission, as ballots carry them. */
  readonly epoch: string;
}

export interface AdmissionRecord extends Term {
  readonly standing: Standing;
  /** As much of the run id as the field keeps. */
  readonly runId: string;
  readonly counterFloor: number;
}

/** A run_id in so many characters as the record keeps of it. */
export function paddedRunId(runId: string): string {
  return runId.padEnd(RUN_ID_LENGTH).slice(0, RUN_ID_LENGTH);
}

/** What the field says, or undefined if it is none. */
export function readAdmissionRecord(field: string): AdmissionRecord | undefined {
  const floor = field.slice(RUN_ID_LENGTH, RUN_ID_LENGTH + FLOOR_LENGTH);
  const epoch = epochIn(field);
  if (epoch === "" || !/^\d{15}$/.test(floor)) return undefined;
  const head = field.slice(0, RUN_ID_LENGTH);
  return {
    standing: head.startsWith("-") ? "closed" : "votes",
    runId: head.slice(1).trimEnd(),
    counterFloor: Number(floor),
    generation: generationIn(epoch),
    epoch,
  };
}

/** The epoch in the field, empty if that is none. */
export function epochIn(field: string): string {
  return field.slice(RUN_ID_LENGTH + FLOOR_LENGTH);
}

/** The generation of an epoch. */
export function generationIn(epoch: string): string {
  const end = epoch.indexOf(GENERATION_END);
  return end < 0 ? "" : epoch.slice(0, end);
}

/** The number of a generation. */
export function generationNumber(generation: string): number {
  return Number.parseInt(generation, 10) || 0;
}

// The members of the fleet. Each change makes a new generation; which set of members has a number is
// agreed upon by a majority of the generation before it (docs/decisions/0003), so two rosters with one
// number are the same.

export interface Member {
  /** Stays the same when the node has lost its memory and was rebuilt. */
  readonly id: string;
  /**
   * As the locker named it that founded the fleet or added the member; other lockers may have
   * another way.
   */
  readonly address: string;
  /** Since which generation without a break: its number. Stored under this name. */
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
  /** Servers that left and could not be told; absent: none. */
  readonly untold?: readonly FormerMember[];
}

/** With an old disk it takes itself for a member. */
export interface FormerMember {
  readonly id: string;
  readonly address: string;
  /** The number of the first generation without it. */
  readonly generation: number;
}

/** So many that could not be told are remembered: the record is read with each look at a node. */
const UNTOLD_KEPT = 16;

export function writeRoster(roster: Roster): string {
  return JSON.stringify(roster);
}

/** What a node has stored; undefined if it is no roster. */
export function readRoster(text: string): Roster | undefined {
  try {
    const roster = JSON.parse(text) as Roster;
    const isWhole = Number.isInteger(roster.generation) && roster.members.every(({ id, address }) => id !== "" && address !== "");
    return isWhole ? roster : undefined;
  } catch {
    return undefined;
  }
}

/** The word that every vote of this generation carries. Addresses are no part of it. */
export function generationOf({ generation, members, maxTtlMs }: Roster): string {
  const ids = members.map(({ id }) => id).sort();
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
  | { readonly maxTtlMs: number };

/** The next generation; `remove` and `replace` name the id of a member. */
export function changed(roster: Roster, change: RosterChange): Roster {
  const generation = roster.generation + 1;
  const next = { ...roster, generation, formerMaxTtlMs: roster.maxTtlMs };
  if ("maxTtlMs" in change) return { ...next, maxTtlMs: change.maxTtlMs };
  const leavingId = "add" in change ? undefined : "remove" in change ? change.remove : change.replace;
  const members = roster.members.flatMap((member) => {
    if (member.id !== leavingId) return [member];
    return "by" in change ? [{ ...change.by, since: generation, inPlaceOf: member.id }] : [];
  });
  if ("add" in change) members.push({ ...change.add, since: generation });
  const leaving = roster.members.flatMap(({ id, address }) => (id === leavingId ? [{ id, address, generation }] : []));
  const untold = [...(roster.untold ?? []), ...leaving].filter(({ address }) => members.every((member) => member.address !== address));
  return { ...next, members, untold: untold.slice(-UNTOLD_KEPT) };
}

/** Those of whom nobody knows that they were told: each member may have heard of another. */
export function untoldOf(rosters: readonly Roster[]): readonly FormerMember[] {
  const newest = Math.max(...rosters.map(({ generation }) => generation));
  const [first, ...others] = rosters.filter(({ generation }) => generation === newest);
  return (first?.untold ?? []).filter(({ id }) => others.every(({ untold = [] }) => untold.some((each) => each.id === id)));
}

// How a node stands, and its admission.

/** How a server and its record of us stand. Fields that the record lacks are undefined. */
export interface NodeStatus {
  readonly runId: string;
  readonly version: string;
  readonly role: string;
  /**
   * It has replicas, or was one: another server with an older memory may answer at this address by
   * now, or soon.
   */
  readonly isReplicated: boolean;
  readonly timeMs: number;
  /** A format that this version does not know, as it stands; then no other field is read. */
  readonly unknownFormat: string | undefined;
  readonly floor: number | undefined;
  /** The field as it stands, or empty. */
  readonly admitted: string;
  readonly admission: AdmissionRecord | undefined;
  readonly id: string | undefined;
  readonly fleet: string | undefined;
  /** Recorded at its admission: everything it answered was on disk. */
  readonly wasDurable: boolean;
  /** The members it was told last; that set was agreed upon. */
  readonly roster: Roster | undefined;
  /** How long it has voted in that generation, by its own clock. */
  readonly openForMs: number;
  /** The ballot that it has promised for the next generation. */
  readonly promised: number;
}

/** Of the records that this version writes and reads. */
export const FORMAT = "1";

/** Its memory is that of this run of the server, whether it votes or is closed. */
export function isOfThisRun({ runId, admission, floor }: NodeStatus): boolean {
  if (admission === undefined || floor === undefined) return false;
  // How it stands takes the place of the last character.
  return paddedRunId(admission.runId) === paddedRunId(paddedRunId(runId).slice(0, -1));
}

/** Admitted since its server started. The Lua scripts decide by the same rule. */
export function isAdmitted(status: NodeStatus): boolean {
  return status.admission?.standing === "votes" && isOfThisRun(status);
}

/** It has accepted a generation that was not opened here yet. */
export function isClosed(status: NodeStatus): boolean {
  return status.admission?.standing === "closed" && isOfThisRun(status);
}

function words(reply: unknown, length?: number): readonly string[] {
  const isOne = Array.isArray(reply) && (length === undefined || reply.length === length);
  if (isOne && reply.every((word) => typeof word === "string")) return reply;
  throw new GarbageReply(reply);
}

const text = (word: string | undefined): string | undefined => (word === "" ? undefined : word);

function number(word: string | undefined): number | undefined {
  if (word === "" || word === undefined) return undefined;
  if (/^\d{1,16}$/.test(word)) return Number(word);
  throw new GarbageReply(word);
}

const STATUS_WORDS = 14;

export const status: ScriptCall<NodeStatus> = {
  source: scripts.status,
  args: [],
  read(reply) {
    const [runId, version, role, replicated, time, format = "", ...record] = words(reply, STATUS_WORDS);
    if (!runId || !version || !role) throw new GarbageReply(reply);
    const isKnown = format === "" || format === FORMAT;
    const timeMs = number(time) ?? 0;
    const [floor, admitted = "", id, fleet, durable, members = "", openedAt, promised] = isKnown ? record : [];
    return {
      runId,
      version,
      role,
      isReplicated: replicated === "1",
      timeMs,
      unknownFormat: isKnown ? undefined : format,
      floor: number(floor),
      admitted,
      admission: admitted === "" ? undefined : readAdmissionRecord(admitted),
      id: text(id),
      fleet: text(fleet),
      wasDurable: durable === "1",
      roster: members === "" ? undefined : readRoster(members),
      openForMs: Math.max(0, timeMs - (number(openedAt) ?? 0)),
      promised: number(promised) ?? 0,
    };
  },
};

export interface OpenAdmissionArguments {
  readonly nonce: string;
  readonly id: string;
  readonly wallMs: number;
  readonly maxTtlMs: number;
  /** The number of the generation from which on an admission of this node counts. */
  readonly sinceGeneration: number;
  /** The fleet that this locker would found, by the ids of its nodes; empty: none. */
  readonly founding: string;
}

/** An open admission: every locker that looks at the node now sees the same. */
export interface OpenAdmission {
  readonly runId: string;
  readonly id: string;
  /**
   * Random, lost with the memory that it was stored in: only this memory can be admitted with it
   * (T1).
   */
  readonly nonce: string;
  /** How long ago the memory was lost, at least. */
  readonly lostForMs: number;
  readonly proposedFloor: number;
  readonly proposedMaxTtlMs: number;
  /** The fleet that its first founders would found. Others with this node are not founded. */
  readonly founding: string;
}

/** Opens the admission, or undefined if the node is admitted. */
export const openAdmission = (given: OpenAdmissionArguments): ScriptCall<OpenAdmission | undefined> => ({
  source: scripts.openAdmission,
  args: [given.nonce, given.id, String(given.wallMs), String(given.maxTtlMs), String(given.sinceGeneration), given.founding],
  read(reply) {
    if (Array.isArray(reply) && reply[0] === "1") return undefined;
    const [, runId = "", id = "", nonce = "", sinceOpened, sinceStart, floor, maxTtlMs, founding = ""] = words(reply, 9);
    return {
      runId,
      id,
      nonce,
      lostForMs: Math.max(number(sinceOpened) ?? 0, number(sinceStart) ?? 0),
      proposedFloor: number(floor) ?? 0,
      proposedMaxTtlMs: number(maxTtlMs) ?? 0,
      founding,
    };
  },
});

/**
 * The floor of an admitted node of this generation, which gets the new epoch in the same
 * step; or undefined if it is none.
 */
export const readFloor = (epoch: string, generation: string): ScriptCall<number | undefined> => ({
  source: scripts.readFloor,
  args: [epoch, generation],
  read(reply) {
    if (reply === null) return undefined;
    return number(words([reply], 1)[0]) ?? 0;
  },
});

/** What the admission of a node names: the memory that is admitted, and above which floor. */
interface AdmittedMemory {
  readonly runId: string;
  readonly nonce: string;
  readonly floor: number;
  readonly epoch: string;
}

export interface AdmitArguments extends AdmittedMemory {
  readonly id: string;
  readonly fleet: string;
  readonly durable: "durable" | "not durable";
  readonly roster: Roster;
  /** What the founders of a new fleet have agreed on; empty where none is founded. */
  readonly founding: string;
}

function readAdmitted(reply: unknown): number | undefined {
  if (!Array.isArray(reply)) throw new GarbageReply(reply);
  return reply[0] === "1" ? number(words(reply, 2)[1]) : undefined;
}

function memoryOf({ runId, nonce, floor, epoch }: AdmittedMemory): readonly string[] {
  return [runId, nonce, String(floor), epoch];
}

/**
 * The floor it was admitted with, or undefined if the server was restarted, the memory lost or the
 * nonce used since, be it by another locker that admitted it.
 */
export const admit = (given: AdmitArguments): ScriptCall<number | undefined> => ({
  source: scripts.admit,
  args: [
    ...memoryOf(given),
    given.id,
    given.fleet,
    given.durable === "durable" ? "1" : "0",
    generationOf(given.roster),
    writeRoster(given.roster),
    given.founding,
  ],
  read: readAdmitted,
});

/** The same for a node that kept everything: nothing in its record changes but the admission. */
export const readmit = (given: AdmittedMemory): ScriptCall<number | undefined> => ({
  source: scripts.readmit,
  args: memoryOf(given),
  read: readAdmitted,
});

export type Marks = ReadonlyMap<string, number>;

/** What a node stores now, and the field admitted, empty where the node is not. */
interface StoredMarks {
  readonly admitted: string;
  readonly marks: Marks;
}

/** Raises these marks, and tells all that are stored. */
export function mark(raised: Marks): ScriptCall<StoredMarks> {
  return {
    source: scripts.mark,
    args: [...raised].flatMap(([name, atLeast]) => [name, String(atLeast)]),
    read(reply) {
      const [admitted, ...stored] = words(reply);
      if (admitted === undefined || stored.length % 2 !== 0) throw new GarbageReply(reply);
      const marks = new Map<string, number>();
      for (let i = 0; i < stored.length; i += 2) marks.set(stored[i] ?? "", Number(stored[i + 1]));
      return { admitted, marks };
    },
  };
}

// The rounds in which the members agree on the next generation.

export type Promised =
  | { readonly kind: "promised"; readonly accepted: number; readonly roster: Roster | undefined }
  /** It has promised this ballot already, or its record has changed. */
  | { readonly kind: "refused"; readonly promised: number };

export const promise = (noted: string, ballot: number): ScriptCall<Promised> => ({
  source: scripts.promise,
  args: [noted, String(ballot)],
  read(reply) {
    const [verdict, number = "", members = ""] = words(reply);
    if (verdict !== "1") return { kind: "refused", promised: Number(number) };
    return { kind: "promised", accepted: Number(number), roster: readRoster(members) };
  },
});

interface AcceptArguments {
  /** The field admitted as it was noted before the promise. */
  readonly noted: string;
  readonly ballot: number;
  readonly roster: Roster;
  /** How long the present generation must have been open: every lease of the one before is over. */
  readonly openForMs: number;
  readonly epoch: string;
}

export type Accepted =
  | { readonly kind: "accepted"; readonly floor: number }
  | { readonly kind: "refused" }
  | { readonly kind: "too early"; readonly missingMs: number };

export const accept = (given: AcceptArguments): ScriptCall<Accepted> => ({
  source: scripts.accept,
  args: [given.noted, String(given.ballot), writeRoster(given.roster), String(given.openForMs), given.epoch],
  read(reply) {
    const [verdict, number = ""] = words(reply);
    if (verdict === "1") return { kind: "accepted", floor: Number(number) };
    return verdict === "2" ? { kind: "too early", missingMs: Number(number) } : { kind: "refused" };
  },
});

interface EnterArguments {
  readonly roster: Roster;
  readonly floor: number;
  readonly epoch: string;
  /** Since which generation it has been a member without a break. */
  readonly sinceGeneration: number;
}

/**
 * True if the node votes in that generation from now on. One that does so already only learns who has been
 * told since that it left.
 */
export const enter = ({ roster, floor, epoch, sinceGeneration }: EnterArguments): ScriptCall<boolean> => ({
  source: scripts.enter,
  args: [generationOf(roster), String(roster.generation), writeRoster(roster), String(floor), epoch, String(sinceGeneration)],
  read: (reply) => reply === "1",
});

/** Tells a server that it has left: true if it never votes or founds again. */
export const retire = (fleet: string, roster: Roster): ScriptCall<boolean> => ({
  source: scripts.retire,
  args: [fleet, String(roster.generation), writeRoster({ ...roster, untold: [] })],
  read: (reply) => reply === "1",
});

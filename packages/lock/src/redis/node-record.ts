// The scripts that read and change a node's record (its id, for which run of its server it was
// admitted, and so on): their arguments and replies. When they are called is decided in admission/.
import { type AdmissionRecord, paddedRunId, readAdmissionRecord } from "./admission-record.js";
import type { Keys } from "./keys.js";
import { admitScript, markScript, openAdmissionScript, readFloorScript, readmitScript, statusScript } from "./lua.generated.js";
import { GarbageReply } from "./requests.js";
import { generationOf, type Roster, readRoster, writeRoster } from "./roster.js";

/** One script call of its own, outside the pipeline. */
export interface ScriptCall<Reply> {
  readonly source: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  read(reply: unknown): Reply;
}

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
  readonly format: "1" | "2";
  /** A format that this version does not know, as it stands; then no other field is read. */
  readonly unknownFormat: string | undefined;
  readonly floor: number | undefined;
  /** The field as it stands, or empty. */
  readonly admitted: string;
  readonly admission: AdmissionRecord | undefined;
  readonly id: string | undefined;
  readonly fleet: string | undefined;
  /** Of a fleet in format 1. */
  readonly size: number | undefined;
  readonly maxTtlMs: number | undefined;
  /** Recorded at its admission: everything it answered was on disk. */
  readonly wasDurable: boolean;
  /** The members it was told last; that set was agreed upon. */
  readonly roster: Roster | undefined;
  /** How long it has voted in that generation, by its own clock. */
  readonly openForMs: number;
  /** The ballot that it has promised for the next generation. */
  readonly promised: number;
}

/** The formats that this version reads; records that name none have format 1. */
export const FORMATS: readonly string[] = ["1", "2"];

/** Its memory is that of this run of the server, whether it votes or is closed. */
export function isOfThisRun({ runId, admission, floor, format }: NodeStatus): boolean {
  if (admission === undefined || floor === undefined) return false;
  const kept = paddedRunId(runId);
  return paddedRunId(admission.runId) === (format === "2" ? paddedRunId(kept.slice(0, -1)) : kept);
}

/** Admitted since its server started. The Lua scripts decide by the same rule. */
export function isAdmitted(status: NodeStatus): boolean {
  return status.admission?.mark === "votes" && isOfThisRun(status);
}

/** It has accepted a generation that was not opened here yet. */
export function isClosed(status: NodeStatus): boolean {
  return status.admission?.mark === "closed" && isOfThisRun(status);
}

function words(reply: unknown, length: number): readonly string[] {
  if (Array.isArray(reply) && reply.length === length && reply.every((word) => typeof word === "string")) return reply;
  throw new GarbageReply(reply);
}

const text = (word: string | undefined): string | undefined => (word === "" ? undefined : word);

function number(word: string | undefined): number | undefined {
  if (word === "" || word === undefined) return undefined;
  if (/^\d{1,16}$/.test(word)) return Number(word);
  throw new GarbageReply(word);
}

const STATUS_WORDS = 18;

export const status = (keys: Keys): ScriptCall<NodeStatus> => ({
  source: statusScript,
  keys: [keys.node],
  args: [],
  read(reply) {
    const [runId, version, role, replicated, time, format = "", ...record] = words(reply, STATUS_WORDS);
    if (!runId || !version || !role) throw new GarbageReply(reply);
    const isKnown = format === "" || FORMATS.includes(format);
    const timeMs = number(time) ?? 0;
    return {
      runId,
      version,
      role,
      isReplicated: replicated === "1",
      timeMs,
      unknownFormat: isKnown ? undefined : format,
      ...readRecord(isKnown ? record : [], format === "2" ? "2" : "1", timeMs),
    };
  },
});

type RecordFields = Omit<NodeStatus, "runId" | "version" | "role" | "isReplicated" | "timeMs" | "unknownFormat">;

function readRecord(record: readonly string[], format: "1" | "2", timeMs: number): RecordFields {
  const [floor, admitted = "", id, fleet, size, maxTtlMs, durable, members = "", since, promised] = record;
  return {
    format,
    floor: number(floor),
    admitted,
    admission: admitted === "" ? undefined : readAdmissionRecord(admitted, format),
    id: text(id),
    fleet: text(fleet),
    size: format === "1" ? number(size) : undefined,
    maxTtlMs: number(maxTtlMs),
    wasDurable: durable === "1",
    roster: members === "" ? undefined : readRoster(members),
    openForMs: Math.max(0, timeMs - (number(since) ?? 0)),
    promised: number(promised) ?? 0,
  };
}

export interface OpenAdmissionArguments {
  readonly nonce: string;
  readonly id: string;
  readonly wallMs: number;
  readonly maxTtlMs: number;
  /** The number of the generation from which on an admission of this node counts. */
  readonly since: number;
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
export const openAdmission = (keys: Keys, given: OpenAdmissionArguments): ScriptCall<OpenAdmission | undefined> => ({
  source: openAdmissionScript,
  keys: [keys.node],
  args: [given.nonce, given.id, String(given.wallMs), String(given.maxTtlMs), String(given.since), given.founding],
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
export const readFloor = (keys: Keys, epoch: string, generation: string): ScriptCall<number | undefined> => ({
  source: readFloorScript,
  keys: [keys.node],
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
  /** How many members the fleet has, where there is no roster: format 1. */
  readonly size: number;
  readonly maxTtlMs: number;
  readonly durable: "durable" | "not durable";
  readonly roster: Roster | undefined;
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
export const admit = (keys: Keys, given: AdmitArguments): ScriptCall<number | undefined> => ({
  source: admitScript,
  keys: [keys.node],
  args: [
    ...memoryOf(given),
    given.id,
    given.fleet,
    String(given.roster === undefined ? given.size : 0),
    String(given.maxTtlMs),
    given.durable === "durable" ? "1" : "0",
    given.roster === undefined ? "" : generationOf(given.roster),
    given.roster === undefined ? "" : writeRoster(given.roster),
    given.founding,
  ],
  read: readAdmitted,
});

/** The same for a node that kept everything: nothing in its record changes but the admission. */
export const readmit = (keys: Keys, given: AdmittedMemory): ScriptCall<number | undefined> => ({
  source: readmitScript,
  keys: [keys.node],
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
export function mark(keys: Keys, raised: Marks): ScriptCall<StoredMarks> {
  return {
    source: markScript,
    keys: [keys.node, keys.marks],
    args: [...raised].flatMap(([name, atLeast]) => [name, String(atLeast)]),
    read(reply) {
      if (!Array.isArray(reply) || reply.length % 2 === 0 || !reply.every((word) => typeof word === "string"))
        throw new GarbageReply(reply);
      const [admitted = "", ...words] = reply as string[];
      const marks = new Map<string, number>();
      for (let i = 0; i < words.length; i += 2) marks.set(words[i] ?? "", Number(words[i + 1]));
      return { admitted, marks };
    },
  };
}

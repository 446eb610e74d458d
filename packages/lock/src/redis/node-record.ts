// The scripts that read and change a node's record (who it is, for which run of its server it was
// admitted): their arguments and replies. When they are called is decided in admission/.
import { paddedRunId, readAdmissionRecord } from "./admission-record.js";
import type { Keys } from "./keys.js";
import { admitScript, openAdmissionScript, readFloorScript, statusScript } from "./lua.generated.js";
import { GarbageReply } from "./requests.js";

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
  readonly floor: number | undefined;
  /** The field as it stands, or empty; it says admittedRunId, incarnation and counterFloor. */
  readonly admitted: string;
  readonly admittedRunId: string | undefined;
  readonly id: string | undefined;
  readonly fleet: string | undefined;
  readonly size: number | undefined;
  readonly maxTtlMs: number | undefined;
  readonly incarnation: string | undefined;
  readonly counterFloor: number | undefined;
  /** Recorded at its admission: everything it answered was on disk. */
  readonly wasDurable: boolean;
  /** A format that this version does not know, as it stands; then no other field is read. */
  readonly unknownFormat: string | undefined;
}

/** The format that this version reads and writes; records that name none have it, too. */
export const FORMAT = "1";

/** Admitted since its server started. The Lua scripts decide by the same rule. */
export function isAdmitted(status: NodeStatus): boolean {
  const { runId, admittedRunId, incarnation, counterFloor, floor } = status;
  const isComplete = incarnation !== undefined && counterFloor !== undefined && floor !== undefined;
  return isComplete && admittedRunId !== undefined && paddedRunId(admittedRunId) === paddedRunId(runId);
}

function words(reply: unknown, length: number): readonly string[] {
  if (Array.isArray(reply) && reply.length === length && reply.every((word) => typeof word === "string")) return reply;
  throw new GarbageReply(reply);
}

const text = (word: string | undefined): string | undefined => (word === "" ? undefined : word);

function number(word: string | undefined): number | undefined {
  if (word === "" || word === undefined) return undefined;
  if (/^\d{1,15}$/.test(word)) return Number(word);
  throw new GarbageReply(word);
}

export const status = (keys: Keys): ScriptCall<NodeStatus> => ({
  source: statusScript,
  keys: [keys.node],
  args: [],
  read(reply) {
    const answer = words(reply, 13);
    const [runId, version, role, replicated, time] = answer;
    const format = answer[12];
    const unknownFormat = format === "" || format === FORMAT ? undefined : format;
    const [floor, admitted = "", id, fleet, size, maxTtlMs, durable] = unknownFormat === undefined ? answer.slice(5) : [];
    if (!runId || !version || !role) throw new GarbageReply(reply);
    const record = admitted === "" ? undefined : readAdmissionRecord(admitted);
    return {
      runId,
      version,
      role,
      isReplicated: replicated === "1",
      timeMs: number(time) ?? 0,
      unknownFormat,
      floor: number(floor),
      admitted,
      admittedRunId: record?.runId,
      id: text(id),
      fleet: text(fleet),
      size: number(size),
      maxTtlMs: number(maxTtlMs),
      incarnation: record?.incarnation,
      counterFloor: record?.counterFloor,
      wasDurable: durable === "1",
    };
  },
});

export interface OpenAdmissionArguments {
  readonly nonce: string;
  readonly id: string;
  readonly wallMs: number;
  readonly maxTtlMs: number;
  /** The locker that would lead the admission, and for how long. */
  readonly lead: string;
  readonly leadMs: number;
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
  /**
   * This locker leads the admission; the others leave it alone. Nothing depends on it but the
   * number of calls.
   */
  readonly leads: boolean;
}

/** Opens the admission, or undefined if the node is admitted. */
export const openAdmission = (keys: Keys, given: OpenAdmissionArguments): ScriptCall<OpenAdmission | undefined> => ({
  source: openAdmissionScript,
  keys: [keys.node],
  args: [given.nonce, given.id, String(given.wallMs), String(given.maxTtlMs), given.lead, String(given.leadMs)],
  read(reply) {
    if (Array.isArray(reply) && reply[0] === "1") return undefined;
    const [, runId = "", id = "", nonce = "", sinceOpened, sinceStart, floor, maxTtlMs, leads] = words(reply, 9);
    return {
      runId,
      id,
      nonce,
      lostForMs: Math.max(number(sinceOpened) ?? 0, number(sinceStart) ?? 0),
      proposedFloor: number(floor) ?? 0,
      proposedMaxTtlMs: number(maxTtlMs) ?? 0,
      leads: leads === "1",
    };
  },
});

/**
 * The floor of an admitted node, which gets the new incarnation in the same step; or undefined if
 * it is not admitted.
 */
export const readFloor = (keys: Keys, incarnation: string): ScriptCall<number | undefined> => ({
  source: readFloorScript,
  keys: [keys.node],
  args: [incarnation],
  read: (reply) => (reply === null ? undefined : number(words([reply], 1)[0])),
});

export interface AdmitArguments {
  readonly runId: string;
  readonly nonce: string;
  readonly floor: number;
  readonly incarnation: string;
  readonly id: string;
  readonly fleet: string;
  readonly size: number;
  readonly maxTtlMs: number;
  readonly durable: "durable" | "not durable";
}

/**
 * The floor it was admitted with, or undefined if the server was restarted, the memory lost or the
 * nonce used since, be it by another locker that admitted it.
 */
export const admit = (keys: Keys, given: AdmitArguments): ScriptCall<number | undefined> => ({
  source: admitScript,
  keys: [keys.node],
  args: [
    given.runId,
    given.nonce,
    String(given.floor),
    given.incarnation,
    given.id,
    given.fleet,
    String(given.size),
    String(given.maxTtlMs),
    given.durable === "durable" ? "1" : "0",
  ],
  read(reply) {
    if (!Array.isArray(reply)) throw new GarbageReply(reply);
    return reply[0] === "1" ? number(words(reply, 2)[1]) : undefined;
  },
});

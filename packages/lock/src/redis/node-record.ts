// The scripts that read and change a node's record (who it is, in which life it was admitted): their arguments and replies. Together with scripts.ts the only
// place that knows their shapes. Decides nothing: when to ask what is admission.ts.
import { paddedRunId, readAdmissionRecord } from "./admission-record.js";
import type { Keys } from "./keys.js";
import { admitScript, openAdmissionScript, readFloorScript, statusScript } from "./lua.generated.js";
import { GarbageReply } from "./requests.js";

/** One script call of its own, outside the stream of requests. */
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
  /** It has replicas, or was one: another server with an older memory may stand behind this address by now, or soon. */
  readonly isReplicated: boolean;
  readonly timeMs: number;
  readonly floor: number | undefined;
  /** The field as it stands, or empty; the three that follow are what it says. */
  readonly admitted: string;
  readonly run: string | undefined;
  readonly id: string | undefined;
  readonly fleet: string | undefined;
  readonly size: number | undefined;
  readonly maxTtlMs: number | undefined;
  readonly epoch: string | undefined;
  readonly base: number | undefined;
  /** Recorded at its admission: whatever it answered was on disk. */
  readonly wasDurable: boolean;
}

/** Its memory is believed in this life of the server. The Lua scripts decide by the same rule. */
export function isAdmitted(status: NodeStatus): boolean {
  const { runId, run, epoch, base, floor } = status;
  return run !== undefined && paddedRunId(run) === paddedRunId(runId) && epoch !== undefined && base !== undefined && floor !== undefined;
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
    const [runId, version, role, replicated, time, floor, admitted = "", id, fleet, size, maxTtlMs, durable] = words(reply, 12);
    if (!runId || !version || !role) throw new GarbageReply(reply);
    const belief = admitted === "" ? undefined : readAdmissionRecord(admitted);
    return {
      runId,
      version,
      role,
      isReplicated: replicated === "1",
      timeMs: number(time) ?? 0,
      floor: number(floor),
      admitted,
      run: belief?.run,
      id: text(id),
      fleet: text(fleet),
      size: number(size),
      maxTtlMs: number(maxTtlMs),
      epoch: belief?.epoch,
      base: belief?.base,
      wasDurable: durable === "1",
    };
  },
});

export interface OpenAdmissionArguments {
  readonly ticket: string;
  readonly id: string;
  readonly wallMs: number;
  readonly maxTtlMs: number;
  readonly claim: string;
  readonly claimMs: number;
}

/** An admission that is open: what every locker that looks at the node now sees alike. */
export interface OpenAdmission {
  readonly runId: string;
  readonly id: string;
  readonly ticket: string;
  /** How long ago the memory was lost, at least. */
  readonly lostForMs: number;
  readonly proposedFloor: number;
  readonly proposedMaxTtlMs: number;
  /** We go ahead; another locker that is at it already would be disturbed for nothing. */
  readonly claimed: boolean;
}

/** Opens the admission, or undefined if the node is admitted. */
export const openAdmission = (keys: Keys, given: OpenAdmissionArguments): ScriptCall<OpenAdmission | undefined> => ({
  source: openAdmissionScript,
  keys: [keys.node],
  args: [given.ticket, given.id, String(given.wallMs), String(given.maxTtlMs), given.claim, String(given.claimMs)],
  read(reply) {
    if (Array.isArray(reply) && reply[0] === "1") return undefined;
    const [, runId = "", id = "", ticket = "", sinceTicket, sinceStart, floor, maxTtlMs, claimed] = words(reply, 9);
    return {
      runId,
      id,
      ticket,
      lostForMs: Math.max(number(sinceTicket) ?? 0, number(sinceStart) ?? 0),
      proposedFloor: number(floor) ?? 0,
      proposedMaxTtlMs: number(maxTtlMs) ?? 0,
      claimed: claimed === "1",
    };
  },
});

/** The floor of an admitted node, which has the new epoch from the same moment on; or undefined if it is not admitted. */
export const readFloor = (keys: Keys, epoch: string): ScriptCall<number | undefined> => ({
  source: readFloorScript,
  keys: [keys.node],
  args: [epoch],
  read: (reply) => (reply === null ? undefined : number(words([reply], 1)[0])),
});

export interface AdmitArguments {
  readonly runId: string;
  readonly ticket: string;
  readonly floor: number;
  readonly epoch: string;
  readonly id: string;
  readonly fleet: string;
  readonly size: number;
  readonly maxTtlMs: number;
  readonly durable: "durable" | "not durable";
}

/** The floor it was admitted with, or undefined if the life, the memory or the ticket is another's by now, or somebody else has admitted it. */
export const admit = (keys: Keys, given: AdmitArguments): ScriptCall<number | undefined> => ({
  source: admitScript,
  keys: [keys.node],
  args: [
    given.runId,
    given.ticket,
    String(given.floor),
    given.epoch,
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

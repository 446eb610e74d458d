// The history of a run: the journals of its workers put together, and beside them what the servers had stored at the end.
import type { Document } from "../traffic/document.js";
import type { AnsweredLine, LeaseLine, Line, SentLine } from "./journal.js";
import type { CounterSample, LeaseRecord, Operation, Pause, Span } from "./records.js";

/** One change, as the store kept it. */
export interface Entry {
  readonly resource: string;
  readonly rev: number;
  readonly token: number;
  readonly seq: number;
  /** The writer's name for it; for documents behind the gateway it follows from token and seq. */
  readonly by?: string;
  readonly op: string;
}

/** A document at the end. */
export interface Final {
  readonly resource: string;
  readonly rev: number;
  /** The fence; undefined where there is none. */
  readonly token: number | undefined;
  readonly document: Document | null;
}

export interface History {
  readonly operations: readonly Operation[];
  readonly leases: readonly LeaseRecord[];
  readonly pauses: readonly Pause[];
  /** How often the lock refused, by code. */
  readonly unlocked: Readonly<Record<string, number>>;
  readonly entries: readonly Entry[];
  readonly finals: readonly Final[];
  /** Fences of resources that only intruders name. */
  readonly strangeFences: readonly { readonly resource: string; readonly token: number }[];
  /** Counters of the nodes, in the order in which they were read. */
  readonly counters: readonly CounterSample[];
  /** When clocks of nodes were set forward. */
  readonly clockJumps: readonly Span[];
  /** Lock keys that were there after all workers had left and the longest ttl had passed, as "node key". */
  readonly leftBehind: readonly string[];
}

export const emptyHistory: History = {
  operations: [],
  leases: [],
  pauses: [],
  unlocked: {},
  entries: [],
  finals: [],
  strangeFences: [],
  counters: [],
  clockJumps: [],
  leftBehind: [],
};

export interface JournalOf {
  readonly author: string;
  readonly client: number;
  readonly lines: readonly Line[];
}

export function operationsOf({ author, lines }: JournalOf): Operation[] {
  const sent = new Map<string, SentLine>();
  const answered = new Map<string, AnsweredLine>();
  for (const line of lines) {
    // A call may be recorded twice: what it was made from is known only in its transaction.
    if (line.e === "sent") sent.set(line.id, { ...line, at: sent.get(line.id)?.at ?? line.at });
    else if (line.e === "answered") answered.set(line.id, line);
  }
  return [...sent.values()].map(({ e: _, at: sentAt, ...call }) => {
    const answer = answered.get(call.id);
    if (answer === undefined) return { ...call, author, sentAt, answeredAt: Number.POSITIVE_INFINITY, outcome: "unknown" };
    const { e: _e, id: _id, at: answeredAt, ...facts } = answer;
    return { ...call, author, sentAt, answeredAt, ...facts };
  });
}

interface SeenLease {
  readonly line: LeaseLine;
  validUntilAt: number;
  toldAt?: number;
  releasedAt?: number;
}

/** Two lines with one token are two leases: the same token twice is what T2 forbids, also to one client. */
export function leasesOf({ client, lines }: JournalOf): LeaseRecord[] {
  const leases: SeenLease[] = [];
  const latest = new Map<string, SeenLease>();
  let lastAt = 0;
  for (const line of lines) {
    lastAt = Math.max(lastAt, "at" in line ? line.at : line.e === "lease" ? line.grantedAt : 0);
    if (line.e === "lease") {
      const lease = { line, validUntilAt: line.validUntilAt };
      leases.push(lease);
      latest.set(`${line.resources[0]} ${line.token}`, lease);
    }
    if (line.e !== "renewed" && line.e !== "told" && line.e !== "released") continue;
    const lease = latest.get(`${line.resource} ${line.token}`);
    if (lease === undefined) continue;
    if (line.e === "renewed") lease.validUntilAt = Math.max(lease.validUntilAt, line.validUntilAt);
    else if (line.e === "told") lease.toldAt ??= line.at;
    else lease.releasedAt ??= line.at;
  }
  return leases.flatMap(({ line: { resources, token, beganAt, grantedAt }, validUntilAt, ...ends }) => {
    // Killed while it held the lease: the dead cannot be told, so its deadline counts as its end.
    const isDead = ends.releasedAt === undefined && ends.toldAt === undefined;
    const diedAt = isDead ? { toldAt: Math.max(validUntilAt, lastAt) } : {};
    return resources.map((resource) => ({ client, resource, token, beganAt, grantedAt, validUntilAt, ...ends, ...diedAt }));
  });
}

export function pausesOf({ lines }: JournalOf): Pause[] {
  return lines.flatMap((line) => (line.e === "pause" ? [{ client: line.client, fromAt: line.fromAt, untilAt: line.untilAt }] : []));
}

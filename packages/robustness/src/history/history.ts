// The history of a run. Each worker writes a journal, a line before each call and one after its
// answer; put together, and beside what the servers had stored at the end, they are the history.
import { closeSync, openSync, writeSync } from "node:fs";
import type { Document } from "./records.js";
import { type Answer, type Call, type CounterSample, type LeaseRecord, nowMs, type Operation, type Pause, type Span } from "./records.js";

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

/** What one reader of changes was told of the resources with this prefix, in this order. */
export interface ChangeStream {
  readonly reader: string;
  readonly prefix: string;
  readonly changes: readonly Entry[];
  /** Why it ended before its time. */
  readonly failure: string | undefined;
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
  /** What readers of changes were told. */
  readonly streams: readonly ChangeStream[];
  /** Counters of the nodes, in the order in which they were read. */
  readonly counters: readonly CounterSample[];
  /** When clocks of nodes were set forward. */
  readonly clockJumps: readonly Span[];
  /** Lock keys that outlived all workers and the longest ttl, as "node key". */
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
  streams: [],
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

/** Two lines with one token are two leases: T2 forbids that also to one client. */
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

type SentLine = { readonly e: "sent"; readonly at: number } & Call;
type AnsweredLine = {
  readonly e: "answered";
  readonly id: string;
  readonly at: number;
  readonly document?: Document | null;
} & Answer;
type LeaseLine = { readonly e: "lease"; readonly resources: readonly string[] } & Pick<
  LeaseRecord,
  "token" | "beganAt" | "grantedAt" | "validUntilAt"
>;

export type Line =
  | SentLine
  | AnsweredLine
  | LeaseLine
  | { readonly e: "renewed"; readonly token: number; readonly resource: string; readonly validUntilAt: number }
  | { readonly e: "told" | "released"; readonly token: number; readonly resource: string; readonly at: number }
  | ({ readonly e: "pause" } & Pause)
  /** The lock's refusal. */
  | { readonly e: "unlocked"; readonly at: number; readonly code: string };

const TICK_MS = 5;
/** Shorter pauses are the ordinary lateness of timers. */
const NOTICED_MS = 10;

export interface LineWriter {
  write(line: Line): void;
}

/** A line is in the kernel when `write` returns, so it survives a SIGKILL of its writer. */
export class Journal implements LineWriter {
  readonly #file: number;
  #pauseWatch: NodeJS.Timeout | undefined;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  /** Records the times in which this process does not run: a timer is late by as much. */
  recordPauses(client: number): void {
    let lastAt = nowMs();
    this.#pauseWatch = setInterval(() => {
      const at = nowMs();
      if (at - lastAt > TICK_MS + NOTICED_MS) this.write({ e: "pause", client, fromAt: lastAt + TICK_MS, untilAt: at });
      lastAt = at;
    }, TICK_MS).unref();
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  close(): void {
    clearInterval(this.#pauseWatch);
    closeSync(this.#file);
  }
}

/** The lines of one journal. A last line that a killed writer did not finish is left out. */
export function linesOf(text: string): Line[] {
  const complete = text.slice(0, text.lastIndexOf("\n") + 1);
  return complete
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

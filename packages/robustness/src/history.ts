// What the processes of a run record: documents, leases, pauses, calls with their answers; and what
// is found to be wrong with that. Each worker writes a journal, a line before each call and one
// after its answer; put together, and beside what the servers had stored at the end, they are the
// history. All instants are milliseconds of the machine's monotonic clock, which is one for all
// processes, so that records of different processes can be compared.
import { createHash } from "node:crypto";
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface Document {
  readonly n: number;
  readonly by: string;
  readonly chain: string;
}

/** What a read showed: revision 0 and no document where nothing was ever written. */
export interface Seen {
  readonly rev: number;
  readonly document: Document | null;
}

/** The document after one more write. */
export function successor(before: Document | null, by: string): Document {
  const chain = createHash("sha1")
    .update(`${before?.chain ?? ""}/${by}`)
    .digest("base64url")
    .slice(0, 16);
  return { n: (before?.n ?? 0) + 1, by, chain };
}

export interface Span {
  readonly fromAt: number;
  readonly untilAt: number;
}

/** One lease of one resource, as its holder saw it. */
export interface LeaseRecord {
  readonly client: number;
  readonly resource: string;
  readonly token: number;
  /** When the acquire that won it began, or a little before. Never after. */
  readonly beganAt: number;
  /** When the holder had it in hand. */
  readonly grantedAt: number;
  /** Until when it was valid by the holder's own deadline, or a little less; renewals included. */
  readonly validUntilAt: number;
  /** When the holder began to release it; absent if it never did. */
  readonly releasedAt?: number;
  /** When the holder's signal told of the end, if that came before the release. */
  readonly toldAt?: number;
}

/** A time in which a client did not run: it was stopped, or the machine had no time for it. */
export interface Pause extends Span {
  readonly client: number;
}

export type WriteKind = "put" | "patch" | "delete";
type CallKind = WriteKind | "seal" | "get" | "guarded" | "forged" | "malformed";
export type Via = "client" | "withResource" | "transaction" | "guard" | "unfenced" | "intruder";

/** done: told so. refused: told that nothing was changed. unknown: anything else. */
export type CallOutcome = "done" | "refused" | "unknown";

/** The revision and the author of a document that a write was made from. */
export interface Basis {
  readonly rev: number;
  readonly by: string | null;
}

export interface Call {
  /** Unique in the run. A write stores it in the document. */
  readonly id: string;
  readonly kind: CallKind;
  readonly via: Via;
  readonly resource: string;
  readonly token?: number;
  readonly seq?: number;
  readonly on?: Basis;
  /** Equal for the writes of one transaction. */
  readonly group?: string;
}

export interface Answer {
  readonly outcome: CallOutcome;
  readonly code?: string;
  readonly rev?: number;
}

/** A call with its answer. */
export interface Operation extends Call, Answer {
  readonly author: string;
  readonly sentAt: number;
  /** Infinity where no answer was recorded: the author was killed. */
  readonly answeredAt: number;
  /** What a read showed. */
  readonly document?: Document | null;
}

/** What a node had stored at one moment. */
export interface CounterSample {
  readonly node: string;
  /** Counts the node's losses of memory. */
  readonly memory: number;
  readonly floor: number;
  readonly counter: number;
}

/** What a checker found to be wrong. */
export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "G1" | "G2" | "G3" | "G4" | "order" | "counters" | "end";
  readonly what: string;
  /** When it showed, where that is known. */
  readonly at?: number;
  readonly resource?: string;
  /** How many updates are lost by it. */
  readonly lostUpdates?: number;
}

/** Waits for so long; false if the signal came first. */
export async function waited(ms: number, over: AbortSignal): Promise<boolean> {
  return await sleep(ms, true, { signal: over }).catch((error: Error) => {
    if (error.name === "AbortError") return false;
    throw error;
  });
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Groups in order of first appearance. */
export function groupedBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** How often each word occurs, the most frequent first. */
export function counted(words: readonly string[]): [string, number][] {
  return [...groupedBy(words, (word) => word)].map(([word, all]): [string, number] => [word, all.length]).sort(([, a], [, b]) => b - a);
}

/** For each of `later`, the highest of `earlier` before it, or undefined. Both are in order. */
export function highestBefore<E, L>(
  earlier: readonly E[],
  later: readonly L[],
  { isBefore, height }: { isBefore: (a: E, b: L) => boolean; height: (one: E) => number },
): (E | undefined)[] {
  let next = 0;
  let highest: E | undefined;
  return later.map((one) => {
    for (let candidate = earlier[next]; candidate !== undefined && isBefore(candidate, one); candidate = earlier[++next])
      if (highest === undefined || height(candidate) > height(highest)) highest = candidate;
    return highest;
  });
}

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
  readonly entries: readonly Entry[];
  readonly finals: readonly Final[];
  /** Fences of resources that only intruders name. */
  readonly strangeFences: readonly { readonly resource: string; readonly token: number }[];
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

/** The last line of each lease says what its holder knew of it. */
export function leasesOf({ client, lines }: JournalOf): LeaseRecord[] {
  const latest = new Map(lines.flatMap((line) => (line.e === "lease" ? [[line.number, line] as const] : [])));
  const lastAt = lines.reduce((last, { at }) => Math.max(last, at), 0);
  return [...latest.values()].flatMap(({ e: _, at: _at, number: _number, resources, ...lease }) => {
    // Killed while it held the lease: the dead cannot be told, so its deadline counts as its end.
    const isDead = lease.releasedAt === undefined && lease.toldAt === undefined;
    const diedAt = isDead ? { toldAt: Math.max(lease.validUntilAt, lastAt) } : {};
    return resources.map((resource) => ({ client, resource, ...lease, ...diedAt }));
  });
}

type SentLine = { readonly e: "sent"; readonly at: number } & Call;
type AnsweredLine = { readonly e: "answered"; readonly at: number; readonly id: string; readonly document?: Document | null } & Answer;
/** Written anew whenever its holder learns something; two leases with one token have two numbers. */
export type LeaseLine = { readonly e: "lease"; readonly at: number; readonly number: number; readonly resources: readonly string[] } & Omit<
  LeaseRecord,
  "client" | "resource"
>;
type PauseLine = { readonly e: "pause"; readonly at: number } & Pause;
export type Line = SentLine | AnsweredLine | LeaseLine | PauseLine;

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
      if (at - lastAt > TICK_MS + NOTICED_MS) this.write({ e: "pause", at, client, fromAt: lastAt + TICK_MS, untilAt: at });
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

const JOURNAL = /^(.*?)\.(\d+)\.jsonl$/;

/** c3.1.jsonl belongs to the second process in the place of c3. */
export function journalName(worker: string, startNumber: number): string {
  return `${worker}.${startNumber}.jsonl`;
}

/** How a client is numbered in leases and pauses. */
export function clientNumber(slot: number, startNumber: number): number {
  return slot * 1_000 + startNumber;
}

export function collectJournals(folder: string): Pick<History, "operations" | "leases" | "pauses"> {
  const journals = readdirSync(folder).flatMap((file) => readJournal(folder, file));
  return {
    operations: journals.flatMap(operationsOf),
    leases: journals.flatMap(leasesOf),
    pauses: journals.flatMap(({ lines }) => lines.filter((line) => line.e === "pause")),
  };
}

function readJournal(folder: string, file: string): JournalOf[] {
  const [, worker, startNumber] = JOURNAL.exec(file) ?? [];
  if (worker === undefined || startNumber === undefined) return [];
  const slot = Number(/^c(\d+)$/.exec(worker)?.[1] ?? Number.NaN);
  const lines = linesOf(readFileSync(join(folder, file), "utf8"));
  return [{ author: `${worker}.${startNumber}`, client: clientNumber(slot, Number(startNumber)), lines }];
}

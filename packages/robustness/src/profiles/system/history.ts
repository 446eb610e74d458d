// The journals of a run put together: every call with its answer, every lease, and beside them what the store kept. Plain data for the checkers; judges nothing.
import type { Stall, Tenure } from "../../history/lease-record.js";
import type { Document } from "./document.js";
import type { AnsweredLine, LeaseLine, Line, Outcome, SentLine } from "./journal.js";

export interface Operation extends Omit<SentLine, "e" | "at"> {
  readonly author: string;
  readonly sentAt: number;
  /** Infinity where no answer was written down: its author was killed. */
  readonly answeredAt: number;
  readonly outcome: Outcome;
  readonly code?: string;
  readonly rev?: number;
  readonly document?: Document | null;
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

/** What there was at the end. */
export interface Final {
  readonly resource: string;
  readonly rev: number;
  /** The fence; undefined where there is none. */
  readonly token: number | undefined;
  readonly document: Document | null;
}

export interface ResourceTenure extends Tenure {
  readonly resource: string;
}

export interface SystemHistory {
  readonly operations: readonly Operation[];
  readonly tenures: readonly ResourceTenure[];
  readonly stalls: readonly Stall[];
  readonly entries: readonly Entry[];
  readonly finals: readonly Final[];
  /** Fences of resources that only strangers know. */
  readonly strangeFences: readonly { readonly resource: string; readonly token: number }[];
  /** How often the lock said no, by code. */
  readonly unlocked: Readonly<Record<string, number>>;
}

export interface JournalOf {
  readonly author: string;
  readonly client: number;
  readonly lines: readonly Line[];
}

export function operationsOf({ author, lines }: JournalOf): Operation[] {
  const sent = new Map<string, SentLine>();
  const answered = new Map<string, AnsweredLine>();
  for (const line of lines) {
    // Said twice: what it was made from was known only later.
    if (line.e === "sent") sent.set(line.id, { ...line, at: sent.get(line.id)?.at ?? line.at });
    else if (line.e === "answered") answered.set(line.id, line);
  }
  return [...sent.values()].map(({ e: _, at, ...what }) => {
    const answer = answered.get(what.id);
    if (answer === undefined) return { ...what, author, sentAt: at, answeredAt: Number.POSITIVE_INFINITY, outcome: "unknown" };
    const { outcome, code, rev, document } = answer;
    const facts = { ...(code === undefined ? {} : { code }), ...(rev === undefined ? {} : { rev }) };
    return { ...what, author, sentAt: at, answeredAt: answer.at, outcome, ...facts, ...(document === undefined ? {} : { document }) };
  });
}

export function tenuresOf({ client, lines }: JournalOf): ResourceTenure[] {
  const leases = new Map<string, { lease: LeaseLine; validUntilAt: number; toldAt?: number; releasedAt?: number }>();
  let lastAt = 0;
  for (const line of lines) {
    lastAt = Math.max(lastAt, "at" in line ? line.at : line.e === "lease" ? line.grantedAt : 0);
    if (line.e === "lease") leases.set(`${line.resources[0]} ${line.token}`, { lease: line, validUntilAt: line.validUntilAt });
    if (line.e !== "renewed" && line.e !== "told" && line.e !== "released") continue;
    const kept = leases.get(`${line.resource} ${line.token}`);
    if (kept === undefined) continue;
    if (line.e === "renewed") kept.validUntilAt = Math.max(kept.validUntilAt, line.validUntilAt);
    else if (line.e === "told") kept.toldAt = line.at;
    else kept.releasedAt = line.at;
  }
  return [...leases.values()].flatMap(({ lease: { resources, token, beganAt, grantedAt }, validUntilAt, toldAt, releasedAt }) => {
    // Killed while it held: it was not running any more when it might have been told.
    const diedAt = releasedAt === undefined && toldAt === undefined ? { toldAt: Math.max(validUntilAt, lastAt) } : {};
    const ends = { ...(toldAt === undefined ? {} : { toldAt }), ...(releasedAt === undefined ? {} : { releasedAt }) };
    return resources.map((resource) => ({ client, resource, token, beganAt, grantedAt, validUntilAt, ...ends, ...diedAt }));
  });
}

export function stallsOf({ lines }: JournalOf): Stall[] {
  return lines.flatMap((line) => (line.e === "stall" ? [{ client: line.client, fromAt: line.fromAt, untilAt: line.untilAt }] : []));
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

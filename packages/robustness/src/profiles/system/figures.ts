// A run in numbers: how many of what, with which end, and how long nothing was stored. Pure.
import { isWrite } from "../../checkers/settled.js";
import { groupedBy, type Operation, type SystemHistory } from "./history.js";
import type { Outcome } from "./run.js";

export interface KindCount {
  readonly kind: string;
  readonly done: number;
  readonly refused: number;
  readonly unknown: number;
}

export interface Figures {
  readonly seconds: number;
  readonly kinds: readonly KindCount[];
  readonly operations: number;
  readonly leases: number;
  /** By code, the most frequent first. */
  readonly refusals: readonly (readonly [string, number])[];
  readonly unlocked: readonly (readonly [string, number])[];
  /** Refused as stale, when the document had been changed since it was read: stored, each would have destroyed somebody's update. */
  readonly savedUpdates: number;
  /** The longest time in which no write of anybody was answered with success. */
  readonly longestSilenceMs: number;
  readonly faults: readonly (readonly [string, number])[];
}

export function figuresOf({ history, span, struck, naps }: Outcome): Figures {
  const { operations, tenures, unlocked } = history;
  const kinds = [...groupedBy(operations, ({ kind, via }) => (isRead(kind) ? kind : `${kind} (${via})`))].map(([kind, all]) =>
    countOf(kind, all),
  );
  const faults = [...struck.map(({ kind }) => kind), ...Array.from({ length: naps }, () => "client stopped between read and write")];
  return {
    seconds: (span.untilAt - span.fromAt) / 1_000,
    kinds: kinds.sort((a, b) => total(b) - total(a)),
    operations: operations.length,
    leases: new Set(tenures.map(({ client, token }) => `${client} ${token}`)).size,
    refusals: counted(operations.flatMap(({ outcome, code }) => (outcome === "refused" ? [code ?? "without a code"] : []))),
    unlocked: Object.entries(unlocked).sort(([, a], [, b]) => b - a),
    savedUpdates: savedUpdates(history).length,
    longestSilenceMs: longestSilenceMs(operations, span),
    faults: counted(faults),
  };
}

function isRead(kind: string): boolean {
  return kind === "get" || kind === "seal";
}

export function savedUpdates({ operations, entries }: Pick<SystemHistory, "operations" | "entries">): Operation[] {
  const entryAt = new Map(entries.map((entry) => [`${entry.resource} ${entry.rev}`, entry]));
  return operations.filter(({ code, resource, on, token = 0 }) => {
    if (code !== "fencing_token_stale" || on === undefined) return false;
    return (entryAt.get(`${resource} ${on.rev + 1}`)?.token ?? 0) > token;
  });
}

function longestSilenceMs(operations: readonly Operation[], { fromAt, untilAt }: { fromAt: number; untilAt: number }): number {
  const writes = operations.filter((operation) => operation.outcome === "done" && isWrite(operation));
  const moments = [fromAt, ...writes.map(({ answeredAt }) => answeredAt).filter((at) => at > fromAt && at < untilAt), untilAt];
  moments.sort((a, b) => a - b);
  return moments.reduce((longest, at, i) => Math.max(longest, at - (moments[i - 1] ?? at)), 0);
}

function countOf(kind: string, all: readonly Operation[]): KindCount {
  const count = (outcome: Operation["outcome"]): number => all.filter((operation) => operation.outcome === outcome).length;
  return { kind, done: count("done"), refused: count("refused"), unknown: count("unknown") };
}

function total({ done, refused, unknown }: KindCount): number {
  return done + refused + unknown;
}

function counted(words: readonly string[]): [string, number][] {
  return [...groupedBy(words, (word) => word)].map(([word, all]): [string, number] => [word, all.length]).sort(([, a], [, b]) => b - a);
}

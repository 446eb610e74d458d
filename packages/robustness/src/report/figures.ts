// A run under faults in numbers.
import { isWrite } from "../checkers/stored-writes.js";
import type { Outcome } from "../harness/fault-run.js";
import type { History } from "../history/history.js";
import { counted, groupedBy, type Operation, type Span } from "../history/records.js";

export interface KindCount {
  readonly kind: string;
  readonly done: number;
  readonly refused: number;
  readonly unknown: number;
}

export type Counts = readonly (readonly [string, number])[];

export interface Figures {
  readonly seconds: number;
  readonly kinds: readonly KindCount[];
  readonly operations: number;
  readonly leases: number;
  /** From the lowest token to the highest. */
  readonly tokens: number;
  /** Leases that ended before their holder released them; of those, the ones whose signal told of it. */
  readonly outlived: number;
  readonly told: number;
  /** By code, the most frequent first. */
  readonly refusals: Counts;
  readonly unlocked: Counts;
  /** Refused as stale when the document had changed since it was read: stored, each would have destroyed an update. */
  readonly savedUpdates: number;
  /** The longest time in which no write was answered with success. */
  readonly longestSilenceMs: number;
  readonly faults: Counts;
}

export function figuresOf({ history, span, injected, pauses }: Outcome): Figures {
  const { operations, leases, unlocked } = history;
  const isRead = (kind: string): boolean => kind === "get" || kind === "seal";
  const kinds = groupedBy(operations, ({ kind, via }) => (isRead(kind) ? kind : `${kind} (${via})`));
  const stopped = Array.from({ length: pauses }, () => "client stopped itself");
  const tokens = leases.map(({ token }) => token).sort((a, b) => a - b);
  return {
    seconds: (span.untilAt - span.fromAt) / 1_000,
    kinds: [...kinds].map(([kind, all]) => countOf(kind, all)).sort((a, b) => total(b) - total(a)),
    operations: operations.length,
    leases: new Set(leases.map(({ client, token }) => `${client} ${token}`)).size,
    tokens: (tokens.at(-1) ?? 0) - (tokens[0] ?? 1) + 1,
    outlived: leases.filter(({ releasedAt = 0, validUntilAt }) => releasedAt > validUntilAt).length,
    told: leases.filter(({ toldAt }) => toldAt !== undefined).length,
    refusals: counted(operations.flatMap(({ outcome, code }) => (outcome === "refused" ? [code ?? "without a code"] : []))),
    unlocked: Object.entries(unlocked).sort(([, a], [, b]) => b - a),
    savedUpdates: savedUpdates(history).length,
    longestSilenceMs: longestSilenceMs(operations, span),
    faults: counted([...injected.map(({ kind }) => kind), ...stopped]),
  };
}

export function savedUpdates({ operations, entries }: Pick<History, "operations" | "entries">): Operation[] {
  const entryAt = new Map(entries.map((entry) => [`${entry.resource} ${entry.rev}`, entry]));
  return operations.filter(({ code, resource, on, token = 0 }) => {
    if (code !== "fencing_token_stale" || on === undefined) return false;
    return (entryAt.get(`${resource} ${on.rev + 1}`)?.token ?? 0) > token;
  });
}

function longestSilenceMs(operations: readonly Operation[], { fromAt, untilAt }: Span): number {
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

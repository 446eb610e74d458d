// A run under faults in words and numbers, for a terminal.
import { L1_TOLERANCE_MS } from "../checkers/leases.js";
import { isWrite } from "../checkers/stored-writes.js";
import type { History } from "../history/history.js";
import { counted, groupedBy, type Operation } from "../history/records.js";
import { ledgerTable, longestSilenceMs } from "./ledger.js";
import type { Outcome } from "./outcome.js";
import { table, whole } from "./table.js";

const SHOWN = 12;

export function textReport(outcome: Outcome): string {
  const figures = figuresOf(outcome);
  const { violations, traps, leftOut, remarks, servers } = outcome;
  const found = violations.slice(0, SHOWN).map(({ promise, what }) => `  ${promise}: ${what}`);
  if (violations.length > SHOWN) found.push(`  and ${violations.length - SHOWN} more`);
  return [
    "",
    servers,
    ...summary(figures),
    ...(figures.operations === 0 ? [] : ["", calls(figures)]),
    ...(outcome.ledger.length === 0 ? [] : ["", ledgerTable(outcome.ledger)]),
    "",
    list("faults", figures.faults),
    list("ambushes", Object.entries(traps)),
    ...(figures.operations === 0 ? [] : [list("refused with", figures.refusals)]),
    list("the lock refused", figures.unlocked),
    list("left out, because enough was broken", Object.entries(leftOut)),
    "",
    ...remarks.map((remark) => `remark: ${remark}`),
    verdict(outcome),
    ...found,
  ].join("\n");
}

export function summary(figures: Figures): string[] {
  const { seconds, operations, leases, tokens, outlived, told, savedUpdates, longestSilenceMs, faults, pauses, counterSamples } = figures;
  const made = whole(faults.reduce((sum, [, count]) => sum + count, 0));
  const inAll = `${whole(leases)} leases in ${seconds.toFixed(0)} s, with ${made} faults.`;
  if (operations === 0)
    return [
      `${inAll} ${whole(leases / seconds)} leases per second, tokens within ${whole(tokens)}.`,
      `Ended before their release: ${whole(outlived)} leases; told by their signal: ${whole(told)}. L1 allows ${L1_TOLERANCE_MS} ms of running time.`,
      `Times a client did not run: ${whole(pauses)}. Samples of counters: ${whole(counterSamples)}.`,
    ];
  const silence = `Longest time without a stored write: ${(longestSilenceMs / 1_000).toFixed(1)} s.`;
  return [
    `${whole(operations)} operations under ${inAll}`,
    `${whole(savedUpdates)} refusals saved an update that a late write would have destroyed. ${silence}`,
  ];
}

export function verdict({ violations, history }: Pick<Outcome, "violations" | "history">): string {
  const lost = violations.reduce((sum, { lostUpdates = 0 }) => sum + lostUpdates, 0);
  if (violations.length > 0)
    return `${violations.length} ${violations.length === 1 ? "violation" : "violations"}${lost > 0 ? `, ${whole(lost)} updates lost` : ""}`;
  if (history.operations.length === 0) return "No violation of T1, T2, L1, L2; counters only rose; no lock was left behind.";
  const read = history.streams.length === 0 ? "" : ", G8";
  return `No violation of T1, T2, L1, L2, G1, G2, G3, G4${read}: every answer can be believed, no update was lost, every resource is linearizable, and all recovered.`;
}

function calls({ kinds }: Figures): string {
  const columns = [{ title: "operation", align: "left" as const }, { title: "done" }, { title: "refused" }, { title: "unknown" }];
  const rows = kinds.map(({ kind, done, refused, unknown }) => [kind, whole(done), whole(refused), whole(unknown)]);
  return table(columns, rows);
}

function list(title: string, counts: Counts): string {
  return `${title}: ${counts.length === 0 ? "none" : counts.map(([name, count]) => `${name} ${whole(count)}`).join(", ")}`;
}

interface KindCount {
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
  /** Leases that ended before their release; of those, the ones whose signal told of it. */
  readonly outlived: number;
  readonly told: number;
  /** How often a client did not run. */
  readonly pauses: number;
  /** In which the node had counted something; the others cannot show a fall. */
  readonly counterSamples: number;
  /** By code, the most frequent first. */
  readonly refusals: Counts;
  readonly unlocked: Counts;
  /** Refused as stale, of a document changed since the read: each would have lost an update. */
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
    pauses: history.pauses.length,
    counterSamples: history.counters.filter(({ floor, counter }) => floor > 0 && counter > 0).length,
    refusals: counted(operations.flatMap(({ outcome, code }) => (outcome === "refused" ? [code ?? "without a code"] : []))),
    unlocked: Object.entries(unlocked).sort(([, a], [, b]) => b - a),
    savedUpdates: savedUpdates(history).length,
    longestSilenceMs: longestSilenceMs(
      operations.filter((operation) => operation.outcome === "done" && isWrite(operation)).map(({ answeredAt }) => answeredAt),
      span,
    ),
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

function countOf(kind: string, all: readonly Operation[]): KindCount {
  const count = (outcome: Operation["outcome"]): number => all.filter((operation) => operation.outcome === outcome).length;
  return { kind, done: count("done"), refused: count("refused"), unknown: count("unknown") };
}

function total({ done, refused, unknown }: KindCount): number {
  return done + refused + unknown;
}

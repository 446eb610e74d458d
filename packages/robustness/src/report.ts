// A run as people read it: what was asked and answered, what broke, and the verdict.
import { L1_TOLERANCE_MS } from "./checkers/leases.js";
import { isWrite } from "./checkers/writes.js";
import { whole } from "./command.js";
import type { InjectedFault } from "./faults/schedule.js";
import { counted, groupedBy, type History, type Operation, type Span, type Violation } from "./history.js";

/** What a run under faults leaves. */
export interface Outcome {
  readonly servers: string;
  /** The time in which there were faults. */
  readonly span: Span;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly injected: readonly InjectedFault[];
  readonly leftOut: Readonly<Record<string, number>>;
  /** How often clients stopped themselves. */
  readonly pauses: number;
}

const SHOWN = 12;

export function textReport(outcome: Outcome): string {
  const { violations, leftOut, servers, history, injected, pauses } = outcome;
  const { operations } = history;
  const stopped = Array.from({ length: pauses }, () => "client stopped itself");
  const refusals = operations.flatMap(({ outcome: how, code }) => (how === "refused" ? [code ?? "without a code"] : []));
  const found = violations.slice(0, SHOWN).map(({ promise, what }) => `  ${promise}: ${what}`);
  if (violations.length > SHOWN) found.push(`  and ${violations.length - SHOWN} more`);
  return [
    "",
    servers,
    ...summary(outcome),
    ...calls(operations),
    ...silences(outcome),
    list("faults", counted([...injected.map(({ kind }) => kind), ...stopped])),
    ...(operations.length === 0 ? [] : [list("refused with", counted(refusals))]),
    list("left out, because enough was broken", Object.entries(leftOut)),
    "",
    verdict(outcome),
    ...found,
  ].join("\n");
}

function summary({ history, span, injected, pauses }: Outcome): string[] {
  const { operations, leases, counters } = history;
  const seconds = (span.untilAt - span.fromAt) / 1_000;
  const held = new Set(leases.map(({ client, token }) => `${client} ${token}`)).size;
  const inAll = `${whole(held)} leases in ${seconds.toFixed(0)} s, with ${whole(injected.length + pauses)} faults.`;
  if (operations.length > 0) {
    const silence = `Longest time without a stored write: ${(longestSilenceMs(storedAt(history), span) / 1_000).toFixed(1)} s.`;
    const saved = `${whole(savedUpdates(history))} refusals saved an update that a late write would have destroyed.`;
    return [`${whole(operations.length)} operations under ${inAll}`, `${saved} ${silence}`];
  }
  const outlived = leases.filter(({ releasedAt = 0, validUntilAt }) => releasedAt > validUntilAt).length;
  const told = leases.filter(({ toldAt }) => toldAt !== undefined).length;
  // Where a node had counted something; the other samples cannot show a fall.
  const samples = counters.filter(({ floor, counter }) => floor > 0 && counter > 0).length;
  return [
    `${inAll} ${whole(held / seconds)} leases per second.`,
    `Ended before their release: ${whole(outlived)} leases; told by their signal: ${whole(told)}. L1 allows ${L1_TOLERANCE_MS} ms of running time.`,
    `Times a client did not run: ${whole(history.pauses.length)}. Samples of counters: ${whole(samples)}.`,
  ];
}

function verdict({ violations, history }: Outcome): string {
  const lost = violations.reduce((sum, { lostUpdates = 0 }) => sum + lostUpdates, 0);
  if (violations.length > 0)
    return `${violations.length} ${violations.length === 1 ? "violation" : "violations"}${lost > 0 ? `, ${whole(lost)} updates lost` : ""}`;
  if (history.operations.length === 0) return "No violation of T1, T2, L1, L2; counters only rose; no lock was left behind.";
  return `No violation of T1, T2, L1, L2, G1, G2, G3, G4: every answer can be believed, no update was lost, every resource is linearizable, and all recovered.`;
}

/** What came of each kind of call. */
function calls(operations: readonly Operation[]): string[] {
  const kinds = groupedBy(operations, ({ kind, via }) => (kind === "get" || kind === "seal" ? kind : `${kind} (${via})`));
  return [...kinds].map(([kind, all]) => list(kind, counted(all.map(({ outcome }) => outcome))));
}

/** For how long nothing was stored during faults of the store itself, each until the next. */
function silences({ history, injected, span }: Outcome): string[] {
  const ofStore = injected.filter(({ isOfStore }) => isOfStore).sort((a, b) => a.fromAt - b.fromAt);
  const stored = storedAt(history);
  return ofStore.map(({ kind, target, fromAt }, i) => {
    const ms = longestSilenceMs(stored, { fromAt, untilAt: ofStore[i + 1]?.fromAt ?? span.untilAt });
    return `${kind} (${target}): ${(ms / 1_000).toFixed(1)} s without a stored write`;
  });
}

function list(title: string, counts: readonly (readonly [string, number])[]): string {
  return `${title}: ${counts.length === 0 ? "none" : counts.map(([name, count]) => `${name} ${whole(count)}`).join(", ")}`;
}

function storedAt({ operations }: History): number[] {
  const done = operations.filter((operation) => operation.outcome === "done" && isWrite(operation));
  return done.map(({ answeredAt }) => answeredAt).sort((a, b) => a - b);
}

function longestSilenceMs(stored: readonly number[], { fromAt, untilAt }: Span): number {
  const moments = [fromAt, ...stored.filter((at) => at > fromAt && at < untilAt), untilAt];
  return moments.reduce((longest, at, i) => Math.max(longest, at - (moments[i - 1] ?? at)), 0);
}

/** Refused as stale, of a document changed since the read: each would have lost an update. */
export function savedUpdates({ operations, entries }: Pick<History, "operations" | "entries">): number {
  const entryAt = new Map(entries.map((entry) => [`${entry.resource} ${entry.rev}`, entry]));
  return operations.filter(({ code, resource, on, token = 0 }) => {
    if (code !== "fencing_token_stale" || on === undefined) return false;
    return (entryAt.get(`${resource} ${on.rev + 1}`)?.token ?? 0) > token;
  }).length;
}

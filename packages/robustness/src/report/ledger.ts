// What became of the writes during single faults: how many were acknowledged, how many of those are
// not stored, and for how long none was stored.
import { isWrite, storedWrites } from "../checkers/stored-writes.js";
import type { InjectedFault } from "../faults/fault-log.js";
import type { History } from "../history/history.js";
import type { Span } from "../history/records.js";
import { table, whole } from "./table.js";

export interface LedgerRow {
  readonly kind: string;
  readonly target: string;
  /** Of the writes that were sent from this fault to the next. */
  readonly acknowledged: number;
  /** Acknowledged, and not stored at the end. */
  readonly lost: number;
  /** Told that they may or may not be stored. */
  readonly unknown: number;
  /** The longest time without an acknowledged write. */
  readonly silenceMs: number;
  /** The longest time without a stored write of the harness, past all gateways. */
  readonly databaseMs: number;
}

interface Accounted {
  readonly history: History;
  readonly span: Span;
  readonly injected: readonly InjectedFault[];
  /** When writes past all gateways were stored. */
  readonly stored: readonly number[];
}

export function ledger({ history, span, injected, stored }: Accounted, kinds: readonly string[]): LedgerRow[] {
  const faults = injected.filter(({ kind }) => kinds.includes(kind)).sort((a, b) => a.fromAt - b.fromAt);
  const kept = new Set(storedWrites(history).flatMap((resource) => [...resource.keptById.keys()]));
  const writes = history.operations.filter(isWrite);
  return faults.map(({ kind, target, fromAt }, index) => {
    const untilAt = faults[index + 1]?.fromAt ?? span.untilAt;
    const sent = writes.filter(({ sentAt }) => sentAt >= fromAt && sentAt < untilAt);
    const done = sent.filter(({ outcome }) => outcome === "done");
    return {
      kind,
      target,
      acknowledged: done.length,
      lost: done.filter(({ id }) => !kept.has(id)).length,
      unknown: sent.filter(({ outcome }) => outcome === "unknown").length,
      silenceMs: longestSilenceMs(
        done.map(({ answeredAt }) => answeredAt),
        { fromAt, untilAt },
      ),
      databaseMs: longestSilenceMs(stored, { fromAt, untilAt }),
    };
  });
}

export function longestSilenceMs(answers: readonly number[], { fromAt, untilAt }: Span): number {
  const moments = [fromAt, ...answers.filter((at) => at > fromAt && at < untilAt), untilAt].sort((a, b) => a - b);
  return moments.reduce((longest, at, i) => Math.max(longest, at - (moments[i - 1] ?? at)), 0);
}

export function ledgerTable(rows: readonly LedgerRow[]): string {
  const columns = [
    { title: "fault", align: "left" as const },
    { title: "of", align: "left" as const },
    ...["acknowledged", "lost", "unknown", "seconds without a write", "past the gateways"].map((title) => ({ title })),
  ];
  const sum = (count: (row: LedgerRow) => number): string => whole(rows.reduce((all, row) => all + count(row), 0));
  const longest = (time: (row: LedgerRow) => number): string => seconds(Math.max(...rows.map(time)));
  const all = [sum(({ acknowledged }) => acknowledged), sum(({ lost }) => lost), sum(({ unknown }) => unknown)];
  return table(columns, [
    ...rows.map(({ kind, target, acknowledged, lost, unknown, silenceMs, databaseMs }) => [
      ...[kind, target, whole(acknowledged), whole(lost), whole(unknown), seconds(silenceMs), seconds(databaseMs)],
    ]),
    ["all", "", ...all, longest(({ silenceMs }) => silenceMs), longest(({ databaseMs }) => databaseMs)],
  ]);
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

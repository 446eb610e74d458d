// A run under faults in words, for a terminal.
import { L1_TOLERANCE_MS } from "../checkers/leases.js";
import type { Outcome } from "../harness/fault-run.js";
import { type Counts, type Figures, figuresOf } from "./figures.js";
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
  const { seconds, operations, leases, tokens, outlived, told, savedUpdates, longestSilenceMs, faults } = figures;
  const made = whole(faults.reduce((sum, [, count]) => sum + count, 0));
  const inAll = `${whole(leases)} leases in ${seconds.toFixed(0)} s, with ${made} faults.`;
  if (operations === 0)
    return [
      `${inAll} ${whole(leases / seconds)} leases per second, tokens within ${whole(tokens)}.`,
      `Ended before their release: ${whole(outlived)} leases; told by their signal: ${whole(told)}. L1 allows ${L1_TOLERANCE_MS} ms of running time.`,
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
  return "No violation of T1, T2, L1, L2, G1, G2, G3, G4: every answer can be believed, no update was lost, every resource is linearizable, and all recovered.";
}

function calls({ kinds }: Figures): string {
  const columns = [{ title: "operation", align: "left" as const }, { title: "done" }, { title: "refused" }, { title: "unknown" }];
  const rows = kinds.map(({ kind, done, refused, unknown }) => [kind, whole(done), whole(refused), whole(unknown)]);
  return table(columns, rows);
}

function list(title: string, counts: Counts): string {
  return `${title}: ${counts.length === 0 ? "none" : counts.map(([name, count]) => `${name} ${whole(count)}`).join(", ")}`;
}

// A run of the whole system told to people at a terminal. Pure.

import type { Violation } from "../../history/lease-record.js";
import { table, whole } from "../../report/table.js";
import type { Asked } from "./arguments.js";
import { type Figures, figuresOf } from "./figures.js";
import type { Outcome } from "./run.js";

const SHOWN = 12;

export function tell(outcome: Outcome): string {
  const figures = figuresOf(outcome);
  const { violations } = outcome;
  const found = violations.slice(0, SHOWN).map(({ promise, what }) => `  ${promise}: ${what}`);
  if (violations.length > SHOWN) found.push(`  and ${violations.length - SHOWN} more`);
  return [
    "",
    outcome.servers,
    summary(figures),
    "",
    calls(figures),
    "",
    list("faults", figures.faults),
    list("ambushes", Object.entries(outcome.traps)),
    list("refused with", figures.refusals),
    list("the lock said no", figures.unlocked),
    list("left out, because enough was broken", Object.entries(outcome.leftOut)),
    "",
    ...outcome.remarks.map((remark) => `remark: ${remark}`),
    verdict(violations),
    ...found,
  ].join("\n");
}

export function summary({ seconds, operations, leases, savedUpdates, longestSilenceMs, faults }: Figures): string {
  const made = faults.reduce((sum, [, count]) => sum + count, 0);
  return [
    `${whole(operations)} operations under ${whole(leases)} leases in ${seconds.toFixed(0)} s, with ${whole(made)} faults.`,
    `${whole(savedUpdates)} refusals saved an update that a late write would have destroyed. Longest time without a stored write: ${(longestSilenceMs / 1_000).toFixed(1)} s.`,
  ].join("\n");
}

export function verdict(violations: readonly Violation[]): string {
  const lost = violations.reduce((sum, { lostUpdates = 0 }) => sum + lostUpdates, 0);
  if (violations.length > 0)
    return `${violations.length} ${violations.length === 1 ? "violation" : "violations"}${lost > 0 ? `, ${whole(lost)} updates lost` : ""}`;
  return "No violation of T1, T2, L1, L2, G1, G2, G3, G4: every answer can be believed, no update was lost, every resource is linearizable, and all recovered.";
}

/** The command that draws the same faults again. */
export function repeat({ seed, mode, clients, durationMs }: Asked): string {
  const control = mode === "unfenced" ? " --control" : "";
  return `npm run faults -- --minutes ${durationMs / 60_000} --clients ${clients} --seed ${seed}${control}`;
}

function calls({ kinds }: Figures): string {
  const columns = [{ title: "operation", align: "left" as const }, { title: "done" }, { title: "refused" }, { title: "unknown" }];
  return table(
    columns,
    kinds.map(({ kind, done, refused, unknown }) => [kind, whole(done), whole(refused), whole(unknown)]),
  );
}

function list(title: string, counts: readonly (readonly [string, number])[]): string {
  return `${title}: ${counts.length === 0 ? "none" : counts.map(([name, count]) => `${name} ${whole(count)}`).join(", ")}`;
}

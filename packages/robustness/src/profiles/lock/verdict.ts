// A fault run told to people: what was done, what was found, how to repeat it. Pure.

import { L1_TOLERANCE_MS } from "../../checkers/leases.js";
import { whole } from "../../report/table.js";
import type { Asked } from "./arguments.js";
import type { Outcome } from "./run.js";

const SHOWN = 10;

export function tell(asked: Asked, { fleet, elapsedMs, history, violations, faults, refusals, traps }: Outcome): string {
  const { tenures, stalls, samples } = history;
  const tokens = tenures.map(({ token }) => token);
  const toldOfEnd = tenures.filter(({ toldAt }) => toldAt !== undefined).length;
  const overslept = tenures.filter(({ releasedAt = 0, validUntilAt }) => releasedAt > validUntilAt).length;
  const found = violations.slice(0, SHOWN).map(({ promise, what }) => `  ${promise}: ${what}`);
  if (violations.length > SHOWN) found.push(`  and ${violations.length - SHOWN} more`);
  const rate = tenures.length / (elapsedMs / 1_000);
  const span = Math.max(...tokens) - Math.min(...tokens) + 1;
  return [
    "",
    fleet,
    `${whole(tenures.length)} leases of ${asked.processes} processes in ${(elapsedMs / 1_000).toFixed(1)} s (${whole(rate)}/s), tokens within ${whole(span)}`,
    `faults: ${listed(faults)}`,
    `ambushes: ${listed(traps)}`,
    `ended before they were given back: ${overslept} leases, ${toldOfEnd} of them told by their signal; times a client did not run: ${whole(stalls.length)}`,
    `acquire failed: ${listed(refusals)}; samples of counters: ${whole(samples.filter(({ floor, counter }) => floor > 0 && counter > 0).length)}; L1 allows ${L1_TOLERANCE_MS} ms of running time`,
    violations.length === 0
      ? "no violation of T1, T2, L1, L2; counters only rose; no lock was left behind"
      : `${violations.length} ${violations.length === 1 ? "violation" : "violations"}`,
    ...found,
  ].join("\n");
}

/** The command that draws the same faults again. */
export function repeat({ seed, kind, processes, leases, limitMs, appendfsync }: Asked): string {
  const control = kind === "naive" ? " --control" : "";
  return `npm run faults -- --lock --processes ${processes} --leases ${leases} --minutes ${limitMs / 60_000} --appendfsync ${appendfsync} --seed ${seed}${control}`;
}

function listed(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  return parts.length === 0 ? "never" : parts.join(", ");
}

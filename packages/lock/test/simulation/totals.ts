// What happened in a number of worlds, added up, and its summary in one line.
import { type AmbushKind, ambushKinds, type FaultKind, faultKinds } from "./world/scenario.js";
import type { WorldResult } from "./world/world.js";

export interface Broken {
  readonly seed: number;
  readonly promise: string;
  readonly what: string;
}

export interface Totals {
  worlds: number;
  acquisitions: number;
  secondDeliveries: number;
  events: number;
  simulatedMs: number;
  readonly faults: Record<FaultKind, number>;
  readonly ambushes: Record<AmbushKind, number>;
  readonly broken: Broken[];
}

export function noTotals(): Totals {
  const faults = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  const ambushes = Object.fromEntries(ambushKinds.map((kind) => [kind, 0])) as Record<AmbushKind, number>;
  return {
    worlds: 0,
    acquisitions: 0,
    secondDeliveries: 0,
    events: 0,
    simulatedMs: 0,
    faults,
    ambushes,
    broken: [],
  };
}

export function count(totals: Totals, seed: number, { violations, ...result }: WorldResult): void {
  merge(totals, { ...result, worlds: 1, broken: violations.map(({ promise, what }) => ({ seed, promise, what })) });
}

export function merge(totals: Totals, other: Totals): void {
  totals.worlds += other.worlds;
  totals.acquisitions += other.acquisitions;
  totals.secondDeliveries += other.secondDeliveries;
  totals.events += other.events;
  totals.simulatedMs += other.simulatedMs;
  for (const kind of faultKinds) totals.faults[kind] += other.faults[kind];
  for (const kind of ambushKinds) totals.ambushes[kind] += other.ambushes[kind];
  totals.broken.push(...other.broken);
}

export function summary(totals: Totals, elapsedMs: number): string {
  const faults = faultKinds.map((kind) => `${kind} ${grouped(totals.faults[kind])}`).join(", ");
  const ambushes = ambushKinds.map((kind) => `${kind} ${grouped(totals.ambushes[kind])}`).join(", ");
  const perSecond = elapsedMs > 0 ? (totals.acquisitions * 1_000) / elapsedMs : 0;
  return [
    `${grouped(totals.worlds)} worlds`,
    `${grouped(totals.acquisitions)} acquisitions`,
    `faults: ${faults} (${grouped(totals.secondDeliveries)} deliveries)`,
    `ambushes: ${ambushes}`,
    `${grouped(totals.broken.length)} violations`,
    `${grouped(perSecond)} acquisitions/s`,
  ].join("; ");
}

export function grouped(number: number): string {
  return Math.round(number)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}

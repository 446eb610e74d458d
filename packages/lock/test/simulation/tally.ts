// What came of some worlds, and how that is said in one line.
import { type AmbushKind, ambushKinds, type FaultKind, faultKinds } from "./world/scenario.js";
import type { Outcome } from "./world/world.js";

export interface Broken {
  readonly seed: number;
  readonly promise: string;
  readonly what: string;
}

export interface Tally {
  worlds: number;
  acquisitions: number;
  secondDeliveries: number;
  events: number;
  simulatedMs: number;
  readonly faults: Record<FaultKind, number>;
  readonly ambushes: Record<AmbushKind, number>;
  readonly broken: Broken[];
}

export function emptyTally(): Tally {
  const faults = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  const ambushes = Object.fromEntries(ambushKinds.map((kind) => [kind, 0])) as Record<AmbushKind, number>;
  return { worlds: 0, acquisitions: 0, secondDeliveries: 0, events: 0, simulatedMs: 0, faults, ambushes, broken: [] };
}

export function count(tally: Tally, seed: number, outcome: Outcome): void {
  tally.worlds++;
  tally.acquisitions += outcome.acquisitions;
  tally.secondDeliveries += outcome.secondDeliveries;
  tally.events += outcome.events;
  tally.simulatedMs += outcome.simulatedMs;
  for (const kind of faultKinds) tally.faults[kind] += outcome.faults[kind];
  for (const kind of ambushKinds) tally.ambushes[kind] += outcome.ambushes[kind];
  for (const { promise, what } of outcome.violations) tally.broken.push({ seed, promise, what });
}

export function merge(tally: Tally, other: Tally): void {
  tally.worlds += other.worlds;
  tally.acquisitions += other.acquisitions;
  tally.secondDeliveries += other.secondDeliveries;
  tally.events += other.events;
  tally.simulatedMs += other.simulatedMs;
  for (const kind of faultKinds) tally.faults[kind] += other.faults[kind];
  for (const kind of ambushKinds) tally.ambushes[kind] += other.ambushes[kind];
  tally.broken.push(...other.broken);
}

export function summary(tally: Tally, elapsedMs: number): string {
  const faults = faultKinds.map((kind) => `${kind} ${grouped(tally.faults[kind])}`).join(", ");
  const ambushes = ambushKinds.map((kind) => `${kind} ${grouped(tally.ambushes[kind])}`).join(", ");
  const perSecond = elapsedMs > 0 ? (tally.acquisitions * 1_000) / elapsedMs : 0;
  return [
    `${grouped(tally.worlds)} worlds`,
    `${grouped(tally.acquisitions)} acquisitions`,
    `faults: ${faults} (${grouped(tally.secondDeliveries)} deliveries)`,
    `ambushes: ${ambushes}`,
    `${grouped(tally.broken.length)} violations`,
    `${grouped(perSecond)} acquisitions/s`,
  ].join("; ");
}

export function grouped(number: number): string {
  return Math.round(number)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, " ");
}

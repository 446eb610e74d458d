// What was really done of what was planned: each fault with its span, or why it was left out. Keeps no opinion.
import { nowMs, type Span } from "../history/lease-record.js";

/** Where a fault happened: a lane of the picture. */
export type Place = "nodes" | "ways to nodes" | "gateways" | "ways to gateways" | "store" | "ways to the store" | "clients" | "ambush";

export interface Struck extends Span {
  readonly kind: string;
  readonly place: Place;
  /** To whom. */
  readonly target: string;
}

export class FaultLog {
  readonly struck: Struck[] = [];
  readonly leftOut: Record<string, number> = {};
  /** The times in which a node's clock was set forward. */
  readonly leaps: Span[] = [];

  /** From now until the returned function is called. */
  begin(fault: Omit<Struck, keyof Span>): () => void {
    const fromAt = nowMs();
    const index = this.struck.push({ ...fault, fromAt, untilAt: Number.POSITIVE_INFINITY }) - 1;
    return () => {
      this.struck[index] = { ...fault, fromAt, untilAt: nowMs() };
    };
  }

  leaveOut(kind: string): void {
    this.leftOut[kind] = (this.leftOut[kind] ?? 0) + 1;
  }

  /** What is not undone yet. */
  lasting(): string[] {
    return this.struck.filter(({ untilAt }) => untilAt === Number.POSITIVE_INFINITY).map(({ kind, target }) => `${kind} (${target})`);
  }

  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { kind } of this.struck) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  }
}

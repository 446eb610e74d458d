// The faults of a run as they happened, each with its span, and how many of the planned ones were
// left out. One fault at a time on each target.
import { counted, nowMs, type Span } from "../history/records.js";

/** What kind of thing was broken: a lane of the picture. */
export type Place = "nodes" | "links to nodes" | "gateways" | "links to gateways" | "store" | "links to the store" | "clients" | "ambush";

export interface Fault {
  readonly kind: string;
  readonly place: Place;
  readonly target: string;
}

export type InjectedFault = Fault & Span;

export class FaultLog {
  readonly injected: InjectedFault[] = [];
  readonly leftOut: Record<string, number> = {};
  /** The times in which a node's clock was set forward. */
  readonly clockJumps: Span[] = [];
  /** When writes past all gateways were stored, where a profile makes some. */
  readonly stored: number[] = [];
  readonly #busy = new Map<object, Promise<void>>();

  /** From now until the returned function is called. */
  begin(fault: Fault): () => void {
    const fromAt = nowMs();
    const index = this.injected.push({ ...fault, fromAt, untilAt: Number.POSITIVE_INFINITY }) - 1;
    return () => {
      this.injected[index] = { ...fault, fromAt, untilAt: nowMs() };
    };
  }

  leaveOut(kind: string): void {
    this.leftOut[kind] = (this.leftOut[kind] ?? 0) + 1;
  }

  /** Left out if the target has a fault already. */
  alone(target: object, fault: Fault, inject: () => Promise<void>): Promise<void> {
    if (this.#busy.has(target)) {
      this.leaveOut(fault.kind);
      return Promise.resolve();
    }
    const end = this.begin(fault);
    const done = inject().finally(() => {
      end();
      this.#busy.delete(target);
    });
    this.#busy.set(target, done);
    return done;
  }

  /** When the target has no fault. */
  async free(target: object): Promise<void> {
    while (this.#busy.has(target)) await this.#busy.get(target);
  }

  /** Faults that are not undone yet. */
  lasting(): string[] {
    return this.injected.filter(({ untilAt }) => untilAt === Number.POSITIVE_INFINITY).map(({ kind, target }) => `${kind} (${target})`);
  }

  counts(): [string, number][] {
    return counted(this.injected.map(({ kind }) => kind));
  }
}

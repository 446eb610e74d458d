// What callers saw of the leases they were given, over several lockers. Not a test.
import { setImmediate as immediate } from "node:timers/promises";
import type { Lease, Locker } from "@palisade/lock";

/**
 * What callers see: which tokens were given, and whether a lease was given while another was held.
 */
export class LeaseHistory {
  leases = 0;
  duplicates = 0;
  overlaps = 0;
  /** Tokens that are not above that of a lease which was granted before the call. */
  sunk = 0;
  longestMs = 0;
  readonly #given = new Set<string>();
  readonly #last = new Map<string, number>();
  readonly #holding = new Map<string, Set<Lease>>();

  /** Takes one lease after the other until it is over. */
  async work(locker: Locker, resource: string, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const askedAt = performance.now();
      const before = this.#last.get(resource) ?? 0;
      const lease = await locker.acquire(resource).catch(() => undefined);
      if (lease === undefined) {
        await immediate();
        continue;
      }
      await this.#keep(resource, lease, before);
      this.longestMs = Math.max(this.longestMs, performance.now() - askedAt);
      this.leases++;
      await lease.release();
    }
  }

  /** Compares it with those that are held, and holds it for a moment itself. */
  async #keep(resource: string, lease: Lease, before: number): Promise<void> {
    const holding = this.#holding.get(resource) ?? new Set();
    this.#holding.set(resource, holding);
    for (const other of holding) if (other.held) this.overlaps++;
    holding.add(lease);
    if (this.#given.has(`${resource} ${lease.token}`)) this.duplicates++;
    this.#given.add(`${resource} ${lease.token}`);
    if (lease.token <= before) this.sunk++;
    this.#last.set(resource, lease.token);
    await immediate();
    holding.delete(lease);
  }

  all(lockers: readonly Locker[], isOver: () => boolean, resources: readonly string[] = ["a", "b", "c"]): Promise<unknown> {
    return Promise.all(lockers.flatMap((locker) => resources.map((resource) => this.work(locker, resource, isOver))));
  }

  get broken(): object {
    return { duplicates: this.duplicates, overlaps: this.overlaps, sunk: this.sunk };
  }
}

export const unbroken = { duplicates: 0, overlaps: 0, sunk: 0 };

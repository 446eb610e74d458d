// The writes that this gateway refused, for GET /v1/refused and the operator's page: the last
// thousand since its start, in memory, so that a flood of them costs nothing but the oldest. The log
// has a line for each, and the metrics count them.
import type { RefusedWrite } from "@palisade/page";

export const RING_SIZE = 1_000;

export class RefusalRing {
  readonly #startedAt = Date.now();
  readonly #rows: RefusedWrite[] = [];
  #count = 0;

  /** How many there were since the start; the id of the last one. */
  get count(): number {
    return this.#count;
  }

  /** From then on none is missing: the start of the gateway, or the oldest that is still here. */
  get since(): number {
    return this.#count <= RING_SIZE ? this.#startedAt : (this.#rows[this.#count % RING_SIZE]?.at ?? this.#startedAt);
  }

  note(refused: Omit<RefusedWrite, "id" | "at">): void {
    this.#rows[this.#count % RING_SIZE] = { id: this.#count + 1, at: Date.now(), ...refused };
    this.#count += 1;
  }

  /** Newest first: at most so many of those after this id that are wanted. */
  newest(limit: number, after: number, isWanted: (row: RefusedWrite) => boolean): readonly RefusedWrite[] {
    const found: RefusedWrite[] = [];
    const last = Math.max(after, this.#count - RING_SIZE);
    for (let id = this.#count; id > last && found.length < limit; id--) {
      const row = this.#rows[(id - 1) % RING_SIZE];
      if (row !== undefined && isWanted(row)) found.push(row);
    }
    return found;
  }
}

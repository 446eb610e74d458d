// The last refused writes of this gateway, for its page. Bounded; who needs more keeps them with
// PALISADE_REFUSED_LOG, in the log, or counts them with the metrics.
import type { RefusedWrite } from "../fenced-store.js";
import type { RefusalOrigin } from "../http/routes/refusals.js";
import type { RefusalRow } from "./messages.js";

const RING_SIZE = 1_000;

export class RefusalRing {
  readonly #rows: RefusalRow[] = [];
  #count = 0;

  /** How many there were since the start; the id of the last one. */
  get count(): number {
    return this.#count;
  }

  note({ resource, code, presentedToken, currentToken, caller, at }: RefusedWrite, { address, requestId }: RefusalOrigin): void {
    const id = this.#count + 1;
    const row = { id, at: at.getTime(), resource, code, presentedToken, currentToken, caller, address, requestId };
    this.#rows[this.#count % RING_SIZE] = row;
    this.#count = id;
  }

  /** Newest first: at most so many of those after this id that are wanted. */
  newest(limit: number, after: number, isWanted: (row: RefusalRow) => boolean): readonly RefusalRow[] {
    const found: RefusalRow[] = [];
    const last = Math.max(after, this.#count - RING_SIZE);
    for (let id = this.#count; id > last && found.length < limit; id--) {
      const row = this.#rows[(id - 1) % RING_SIZE];
      if (row !== undefined && isWanted(row)) found.push(row);
    }
    return found;
  }
}

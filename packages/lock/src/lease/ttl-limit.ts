// The fleet's own longest lease, once it is known: whoever asks for more is refused before any node is asked. Longer ones would outlive the time that a node which
// lost its memory is made to wait (T2).
import type { Fleet } from "../protocol/fleet.js";

export class TtlLimit {
  readonly #fleet: Fleet;
  #maxTtlMs: number | undefined;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  check(ttlMs: number): void {
    this.#maxTtlMs ??= this.#fleet.state().maxTtlMs;
    if (this.#maxTtlMs === undefined || ttlMs <= this.#maxTtlMs) return;
    throw new RangeError(
      `ttlMs ${ttlMs} is longer than this fleet's leases may be: ${this.#maxTtlMs} ms (maxTtlMs, stored when the fleet was founded)`,
    );
  }
}

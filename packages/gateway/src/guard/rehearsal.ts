// Runs every form of the statement once without an effect: whether this engine can run them is
// known before the first write, and nothing is written.
import type { Lanes } from "../store/lanes.js";
import type { FencedWrites } from "./fenced-writes.js";

export class Rehearsal {
  readonly #lanes: Lanes;
  readonly #writes: { readonly current: FencedWrites };
  #hasPassed = false;

  constructor(lanes: Lanes, writes: { readonly current: FencedWrites }) {
    this.#lanes = lanes;
    this.#writes = writes;
  }

  /** Undefined when every statement has run once; otherwise why one did not. */
  async fault(): Promise<string | undefined> {
    if (this.#hasPassed) return undefined;
    const outcome = await this.#lanes.use([], async (connection) => {
      const message = await this.#writes.current.rehearse(connection);
      return message === undefined ? ({ kind: "passed" } as const) : ({ kind: "failed", message } as const);
    });
    if (outcome.kind === "unavailable") return `no connection was free (${outcome.reason})`;
    if (outcome.kind === "failed") return outcome.message;
    this.#hasPassed = true;
    return undefined;
  }
}

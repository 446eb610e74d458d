// The first contact with the nodes: who asks before they were met waits here, and nobody waits twice. Decides nothing about locks.
import { describeState } from "./account.js";
import type { Core } from "./core.js";
import { LockError } from "./errors.js";
import type { Fleet, FleetState } from "./node/open-nodes.js";
import { Patience } from "./patience.js";

/** How often ready looks again whether a quorum is believed by now. */
const POLL_MS = 20;

export class Introduction {
  readonly #core: Core;
  readonly #fleet: Fleet;
  #over: Promise<void> | undefined;
  done = false;

  constructor(core: Core, fleet: Fleet) {
    this.#core = core;
    this.#fleet = fleet;
  }

  /** Resolves when a quorum was met and believed, when there is nobody left to meet, or when the caller's patience ends. */
  async wait(patience: Patience): Promise<void> {
    if (this.done) return;
    this.#over ??= this.#meet();
    void this.#over.then(() => patience.wake());
    await patience.sleep(patience.leftMs);
  }

  /** Resolves when a quorum is believed. Throws what is wrong if that does not come about within the locker's waitMs. */
  async ready(): Promise<FleetState> {
    const { clock, policy, dormitory } = this.#core;
    const patience = new Patience(clock, dormitory, { waitMs: policy.waitMs, signal: undefined });
    await this.wait(patience);
    for (;;) {
      patience.check([]);
      this.check();
      const state = this.#fleet.state();
      if (state.admitted.length >= policy.quorum) return state;
      if (patience.leftMs === 0) throw new LockError("LOCK_NO_QUORUM", describeState(state, policy));
      await patience.sleep(POLL_MS);
    }
  }

  /** Throws if this locker must not vote on these nodes. */
  check(): void {
    const refusal = this.#fleet.refusal();
    if (refusal === undefined) return;
    throw refusal.kind === "ttl" ? new RangeError(refusal.message) : new LockError("FLEET_MISMATCH", refusal.message);
  }

  #meet(): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        this.done = true;
        resolve();
      };
      const look = (): void => {
        if (this.#fleet.state().admitted.length >= this.#core.policy.quorum) over();
      };
      for (const node of this.#fleet.nodes) void node.met().then(look);
      void this.#fleet.settled().then(over);
    });
  }
}

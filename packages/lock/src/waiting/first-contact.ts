// The first contact with the nodes: who asks before they were met waits here, and nobody waits twice. Decides nothing about locks.

import { describeState } from "../lease/messages.js";
import { LockError } from "../protocol/errors.js";
import type { Fleet, FleetState } from "../protocol/fleet.js";
import type { WaitContext } from "./context.js";
import { WaitBudget } from "./wait-budget.js";

/** How often ready looks again whether a quorum is believed by now. */
const POLL_MS = 20;

export class FirstContact {
  readonly #core: WaitContext;
  readonly #fleet: Fleet;
  #over: Promise<void> | undefined;
  done = false;

  constructor(core: WaitContext, fleet: Fleet) {
    this.#core = core;
    this.#fleet = fleet;
  }

  /**
   * Resolves when a quorum was met and believed, when there is nobody left to meet, or when the caller gives up. Not part of waiting for a lock, so waitMs does not
   * end it: the first call of a fresh locker with waitMs 0 is to ask the nodes, too.
   */
  async wait(signal?: AbortSignal): Promise<void> {
    if (this.done) return;
    this.#over ??= this.#meet();
    await this.#await(this.#over, signal);
  }

  /** Resolves when a quorum is believed. Throws what is wrong if that does not come about within the locker's waitMs. */
  async ready(): Promise<FleetState> {
    const { clock, policy, waiters } = this.#core;
    const budget = new WaitBudget(clock, waiters, { waitMs: policy.waitMs, signal: undefined });
    // Everybody, not only a quorum: a stranger among the nodes is to be found now rather than later. It cannot vote before it is found.
    await this.#await(this.#fleet.settled());
    for (;;) {
      budget.check([]);
      this.check();
      const state = this.#fleet.state();
      if (state.admitted.length >= policy.quorum) return state;
      if (budget.leftMs === 0) throw new LockError("LOCK_NO_QUORUM", describeState(state, policy));
      await budget.sleep(POLL_MS);
    }
  }

  /** Throws if this locker must not vote on these nodes. */
  check(): void {
    const refusal = this.#fleet.refusal();
    if (refusal === undefined) return;
    throw refusal.kind === "ttl" ? new RangeError(refusal.message) : new LockError("FLEET_MISMATCH", refusal.message);
  }

  /** Connecting and the first questions may each take connectTimeoutMs. */
  async #await(event: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    const { clock, waiters, policy } = this.#core;
    const budget = new WaitBudget(clock, waiters, { waitMs: 2 * policy.connectTimeoutMs, signal });
    void event.then(() => budget.wake());
    await budget.sleep(budget.leftMs);
  }

  #meet(): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        this.done = true;
        resolve();
      };
      const { clock, policy } = this.#core;
      let isQuorumMet = false;
      const look = (): void => {
        if (isQuorumMet || this.#fleet.state().admitted.length < policy.quorum) return;
        isQuorumMet = true;
        // A lease on all nodes outlives more failures than one on a bare quorum: the others have a moment to catch up.
        clock.setBackgroundTimer(policy.nodeTimeoutMs, over);
      };
      for (const node of this.#fleet.nodes) void node.met().then(look);
      void this.#fleet.settled().then(over);
    });
  }
}

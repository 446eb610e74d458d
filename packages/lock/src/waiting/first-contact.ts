// The first contact with the nodes, which every call waits for.
import { closedError, describeState } from "../lease/messages.js";
import type { LockerState } from "../lease/state.js";
import { LockError } from "../protocol/ballot.js";
import type { FleetState } from "../protocol/fleet.js";
import { WaitBudget } from "./wait-budget.js";

/** How often `ready` checks whether a quorum is admitted by now. */
const POLL_MS = 20;

export class FirstContact {
  readonly #locker: LockerState;
  #contact: Promise<void> | undefined;
  isDone = false;

  constructor(locker: LockerState) {
    this.#locker = locker;
  }

  /**
   * Resolves when a quorum was reached and admitted, when no node is left to reach, or when the
   * caller gives up. Not part of waiting for a lock, so waitMs does not end it: the first call of a
   * new locker with waitMs 0 asks the nodes, too.
   */
  async wait(signal?: AbortSignal): Promise<void> {
    if (this.isDone) return;
    this.#contact ??= this.#begin();
    await this.#await(this.#contact, signal);
  }

  /** Before a call asks the nodes: throws if the locker is closed, or must not use them. */
  async pass(resources: readonly string[] = []): Promise<void> {
    await this.passUnchecked(resources);
    this.#locker.checkUsable();
  }

  /** For what may be asked of nodes that are not one fleet. */
  async passUnchecked(resources: readonly string[] = []): Promise<void> {
    if (!this.isDone) await this.wait();
    if (this.#locker.isClosed) throw closedError(resources);
  }

  /**
   * Resolves when a quorum is admitted. Throws what is wrong if that takes longer than the locker's
   * waitMs.
   */
  async ready(): Promise<FleetState> {
    const { fleet } = this.#locker;
    const budget = new WaitBudget(this.#locker, { waitMs: this.#locker.policy.waitMs });
    // All nodes, not only a quorum: a node of another fleet is to be found now rather than later.
    // It cannot vote before it is found.
    await this.#await(fleet.settled());
    for (;;) {
      budget.check([]);
      this.#locker.checkUsable();
      const state = fleet.state();
      const { policy } = this.#locker;
      if (state.admitted.length >= policy.quorum) return state;
      if (budget.leftMs === 0) throw new LockError("LOCK_NO_QUORUM", describeState(state, this.#locker));
      await budget.sleep(POLL_MS);
    }
  }

  /** Connecting and the first requests may each take connectTimeoutMs. */
  async #await(event: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    const budget = new WaitBudget(this.#locker, { waitMs: 2 * this.#locker.policy.connectTimeoutMs, signal });
    void event.then(() => budget.wake());
    await budget.sleep(budget.leftMs);
  }

  #begin(): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        this.isDone = true;
        resolve();
      };
      const { clock, fleet, policy } = this.#locker;
      let isQuorumReached = false;
      const look = (): void => {
        if (isQuorumReached || fleet.state().admitted.length < this.#locker.policy.quorum) return;
        isQuorumReached = true;
        // A lease on all nodes outlives more failures than one on a bare quorum: the others have a
        // moment to catch up.
        clock.setBackgroundTimer(policy.nodeTimeoutMs, finish);
      };
      for (const node of fleet.nodes) void node.met().then(look);
      void fleet.settled().then(finish);
    });
  }
}

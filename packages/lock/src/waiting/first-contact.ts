// The first contact with the nodes, which every call waits for, and what the fleet allows from then
// on.
import { closedError, describeState } from "../lease/messages.js";
import { LockError } from "../protocol/ballot.js";
import type { FleetState, OpenFleet } from "../protocol/fleet.js";
import type { WaitContext } from "./context.js";
import { WaitBudget } from "./wait-budget.js";

/** How often `ready` checks whether a quorum is admitted by now. */
const POLL_MS = 20;

type Context = Pick<WaitContext, "clock" | "nodes" | "policy" | "waiters">;

export class FirstContact {
  readonly #context: Context;
  readonly #fleet: OpenFleet;
  #contact: Promise<void> | undefined;
  isDone = false;

  constructor(context: Context, fleet: OpenFleet) {
    this.#context = context;
    this.#fleet = fleet;
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
    this.check();
  }

  /** For what may be asked of nodes that are not one fleet. */
  async passUnchecked(resources: readonly string[] = []): Promise<void> {
    if (!this.isDone) await this.wait();
    if (this.#context.waiters.closed) throw closedError(resources);
  }

  /**
   * Resolves when a quorum is admitted. Throws what is wrong if that takes longer than the locker's
   * waitMs.
   */
  async ready(): Promise<FleetState> {
    const { clock, waiters } = this.#context;
    const budget = new WaitBudget(clock, waiters, { waitMs: this.#context.policy.waitMs, signal: undefined });
    // All nodes, not only a quorum: a node of another fleet is to be found now rather than later.
    // It cannot vote before it is found.
    await this.#await(this.#fleet.settled());
    for (;;) {
      budget.check([]);
      this.check();
      const state = this.#fleet.state();
      const { policy } = this.#context;
      if (state.admitted.length >= policy.quorum) return state;
      if (budget.leftMs === 0) throw new LockError("LOCK_NO_QUORUM", describeState(state, this.#context));
      await budget.sleep(POLL_MS);
    }
  }

  /** Throws if this locker must not use these nodes. */
  check(): void {
    const { refusal } = this.#fleet;
    if (refusal === undefined) return;
    throw refusal.kind === "ttl" ? new RangeError(refusal.message) : new LockError("FLEET_MISMATCH", refusal.message);
  }

  /**
   * Throws RangeError if the fleet is known to allow only shorter leases: a longer one would
   * outlive the time that a node which lost its memory is made to wait, and that node would grant
   * the resource again (L2).
   */
  checkTtl(ttlMs: number): void {
    const { maxTtlMs } = this.#fleet;
    if (maxTtlMs === undefined || ttlMs <= maxTtlMs) return;
    throw new RangeError(`ttlMs ${ttlMs} is longer than this fleet's leases may be: ${maxTtlMs} ms (maxTtlMs, stored with the fleet)`);
  }

  /** Connecting and the first requests may each take connectTimeoutMs. */
  async #await(event: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    const { clock, policy, waiters } = this.#context;
    const budget = new WaitBudget(clock, waiters, { waitMs: 2 * policy.connectTimeoutMs, signal });
    void event.then(() => budget.wake());
    await budget.sleep(budget.leftMs);
  }

  #begin(): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        this.isDone = true;
        resolve();
      };
      const { clock, policy } = this.#context;
      let isQuorumReached = false;
      const look = (): void => {
        if (isQuorumReached || this.#fleet.state().admitted.length < this.#context.policy.quorum) return;
        isQuorumReached = true;
        // A lease on all nodes outlives more failures than one on a bare quorum: the others have a
        // moment to catch up.
        clock.setBackgroundTimer(policy.nodeTimeoutMs, finish);
      };
      for (const node of this.#fleet.nodes) void node.met().then(look);
      void this.#fleet.settled().then(finish);
    });
  }
}

// Who waits for a resource of somebody else's, and when it is worth asking again: at the first of a release that a quorum of nodes tells of, the moment at which
// enough holders run out, and a poll in case nobody tells anything. Decides when; never asks for the lock itself.
//
// A release does not wake everybody. Each waiter sits in one of a few seats, and a node tells only the seat whose turn it is, and a second one as its backup. The
// turn is the token of the released lease: the same on every node, without any state, and rising, so it goes round.

import { type ReleaseNews, WAKE_SLOTS } from "../protocol/node.js";
import type { Lost } from "../protocol/outcome.js";
import { afterExpiryMs, backOffMs, backupDelayMs, drawDelayMs, safetyPollMs } from "../quorum/pacing.js";
import type { WaitContext } from "./context.js";
import type { WaitBudget } from "./wait-budget.js";

export class Waiting {
  readonly #core: WaitContext;
  readonly #budget: WaitBudget;
  readonly #stops: (() => void)[] = [];
  readonly #toldFirst = new Set<number>();
  readonly #told = new Set<number>();
  readonly #listeningTo = new Set<number>();
  #listeners = 0;
  #fruitless = 0;
  #isYielding = false;

  constructor(core: WaitContext, resources: readonly string[], budget: WaitBudget) {
    this.#core = core;
    this.#budget = budget;
    const seat = Math.floor(core.clock.random() * WAKE_SLOTS);
    for (const resource of resources) {
      for (const [i, node] of core.nodes.entries()) {
        const listener = { released: (news: ReleaseNews) => this.#released(i, news), listening: () => this.#listening(i) };
        this.#stops.push(node.onReleased(resource, seat, listener));
      }
    }
  }

  /** Leaves the resource to others for a while, unless told that it is our turn. */
  async yield(forMs: number): Promise<void> {
    this.#isYielding = true;
    await this.#budget.sleep(forMs);
    this.#isYielding = false;
  }

  /** An attempt begins: what was heard before is used up, what is heard from now on may be news. */
  attempting(): void {
    this.#toldFirst.clear();
    this.#told.clear();
    this.#listeningTo.clear();
    this.#listeners = 0;
  }

  /** Sleeps until it is worth asking again. */
  async rest(lost: Lost): Promise<void> {
    const { clock, policy } = this.#core;
    let forMs = safetyPollMs(policy.retry, clock.random());
    // Held by others on all nodes that answered: they will tell, or run out. Anything else (we had part of it, too few answered, it took too long) may be
    // different in a moment, but may also be our own doing: back off, further each time.
    const plainlyHeld = lost.reason === "held" && lost.grants === 0;
    if (!plainlyHeld) forMs = Math.min(forMs, this.#backOff());
    if (lost.reason === "held" && lost.freeInMs !== undefined) forMs = Math.min(forMs, afterExpiryMs(lost.freeInMs, clock.random()));
    forMs = Math.min(forMs, this.#newsDelayMs());
    await this.#budget.sleep(forMs);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  // What was heard since the attempt began. One node's word may be the first of a lease that is still held on the other nodes: asking at once would find the rest
  // taken and split the vote. A quorum of words is a quorum of free nodes.
  #newsDelayMs(): number {
    const { clock, policy } = this.#core;
    if (this.#listeningTo.size >= policy.quorum) return 0;
    if (this.#toldFirst.size >= policy.quorum) return drawDelayMs(this.#listeners - 1, clock.random());
    if (this.#told.size >= policy.quorum) return backupDelayMs(clock.random());
    return Number.POSITIVE_INFINITY;
  }

  #released(node: number, { rank, listeners }: ReleaseNews): void {
    const { quorum } = this.#core.policy;
    const wasToldFirst = this.#toldFirst.size >= quorum;
    const wasTold = this.#told.size >= quorum;
    if (rank === 0) this.#toldFirst.add(node);
    this.#told.add(node);
    this.#listeners = Math.max(this.#listeners, listeners);
    if (wasToldFirst || (wasTold && this.#toldFirst.size < quorum)) return;
    if (this.#told.size >= quorum) {
      this.#fruitless = 0;
      this.#budget.wakeWithin(this.#newsDelayMs());
    } else if (this.#told.size === 1) {
      // The words of the other nodes may be lost with their connections.
      this.#budget.wakeWithin(this.#backOff() + (rank === 0 ? 0 : backupDelayMs(0)));
    }
  }

  // What was published before we were listening is lost: ask once more when enough nodes would tell.
  #listening(node: number): void {
    const before = this.#listeningTo.size;
    this.#listeningTo.add(node);
    const { quorum } = this.#core.policy;
    if (!this.#isYielding && before < quorum && this.#listeningTo.size >= quorum) this.#budget.wakeWithin(0);
  }

  #backOff(): number {
    this.#fruitless++;
    return backOffMs(this.#fruitless, this.#core.policy.retry, this.#core.clock.random());
  }
}

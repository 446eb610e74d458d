// When a caller that waits for a held resource asks again: after a release that a quorum of nodes
// published, when enough holders run out, after a lost vote, and at a poll in case every notice was
// lost.
//
// A release does not wake all waiters. They spread over a few wake slots; a node notifies one slot
// and a second one as its backup. The first slot follows from the token of the released lease: the
// same on every node without any state, and rising, so every slot comes first in turn.
import { retryAfterMs } from "../lease/time-until-free.js";
import { type ReleaseNotice, WAKE_SLOTS } from "../protocol/node.js";
import type { Lost } from "../protocol/outcome.js";
import type { WaitContext } from "./context.js";
import { afterExpiryMs, backOffMs, backupDelayMs, safetyPollMs, spreadDelayMs } from "./retry-delay.js";
import type { WaitBudget } from "./wait-budget.js";

export class WakeUp {
  readonly #context: WaitContext;
  readonly #budget: WaitBudget;
  readonly #stops: (() => void)[] = [];
  /** Nodes, by index, that notified this waiter first, or at all, or that it is listening to. */
  readonly #notifiedFirst = new Set<number>();
  readonly #notified = new Set<number>();
  readonly #listeningTo = new Set<number>();
  #listeners = 0;
  #failures = 0;
  #isYielding = false;

  constructor(context: WaitContext, resources: readonly string[], budget: WaitBudget) {
    this.#context = context;
    this.#budget = budget;
    const wakeSlot = Math.floor(context.clock.random() * WAKE_SLOTS);
    for (const resource of resources) {
      for (const [i, node] of context.nodes.entries()) {
        const listener = {
          released: (notice: ReleaseNotice) => this.#released(i, notice),
          listening: () => this.#listening(i),
        };
        this.#stops.push(node.onReleased(resource, wakeSlot, listener));
      }
    }
  }

  /** Leaves the resource to other waiters for a while, unless notified first. */
  async yield(forMs: number): Promise<void> {
    this.#isYielding = true;
    await this.#budget.sleep(forMs);
    this.#isYielding = false;
  }

  /** The nodes are about to be asked: earlier notices are used up, later ones may be news. */
  asking(): void {
    this.#notifiedFirst.clear();
    this.#notified.clear();
    this.#listeningTo.clear();
    this.#listeners = 0;
  }

  /** Sleeps until it is worth asking again. */
  async sleep(lost: Lost): Promise<void> {
    const { clock, policy } = this.#context;
    let forMs = safetyPollMs(policy.retry, clock.random());
    // Held by others on all nodes that answered: they will notify, or run out. Anything else (this
    // caller had part of it, too few answered, it took too long) may change in a moment, but may
    // also be this caller's own doing: back off, further each time.
    const isPlainlyHeld = lost.reason === "held" && lost.grants === 0;
    if (!isPlainlyHeld) forMs = Math.min(forMs, this.#backOffMs());
    const freeInMs = retryAfterMs(lost, policy);
    if (freeInMs !== undefined) forMs = Math.min(forMs, afterExpiryMs(freeInMs, clock.random()));
    await this.#budget.sleep(Math.min(forMs, this.#noticeDelayMs()));
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  // By what was heard since the nodes were asked. The notice of one node may be the first of a
  // lease that is still held on the other nodes: asking at once would find the rest taken and split
  // the vote. A quorum of notices is a quorum of free nodes.
  #noticeDelayMs(): number {
    const { clock, policy } = this.#context;
    if (this.#listeningTo.size >= policy.quorum) return 0;
    if (this.#notifiedFirst.size >= policy.quorum) return spreadDelayMs(this.#listeners - 1, clock.random());
    if (this.#notified.size >= policy.quorum) return backupDelayMs(clock.random());
    return Number.POSITIVE_INFINITY;
  }

  #released(node: number, { rank, listeners }: ReleaseNotice): void {
    const { quorum } = this.#context.policy;
    const wasFirst = this.#notifiedFirst.size >= quorum;
    const wasNotified = this.#notified.size >= quorum;
    if (rank === 0) this.#notifiedFirst.add(node);
    this.#notified.add(node);
    this.#listeners = Math.max(this.#listeners, listeners);
    if (wasFirst || (wasNotified && this.#notifiedFirst.size < quorum)) return;
    if (this.#notified.size >= quorum) {
      this.#failures = 0;
      this.#budget.wakeWithin(this.#noticeDelayMs());
    } else if (this.#notified.size === 1) {
      // The notices of the other nodes may be lost with their connections.
      this.#budget.wakeWithin(this.#backOffMs() + (rank === 0 ? 0 : backupDelayMs(0)));
    }
  }

  // A notice published before listening began is lost: ask once more when enough nodes would
  // notify.
  #listening(node: number): void {
    const before = this.#listeningTo.size;
    this.#listeningTo.add(node);
    const { quorum } = this.#context.policy;
    if (!this.#isYielding && before < quorum && this.#listeningTo.size >= quorum) this.#budget.wakeWithin(0);
  }

  #backOffMs(): number {
    this.#failures++;
    return backOffMs(this.#failures, this.#context.policy.retry, this.#context.clock.random());
  }
}

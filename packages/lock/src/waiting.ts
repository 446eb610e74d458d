// Who waits for a resource of somebody else's, and when it is worth asking again: at the first of a release that a quorum of nodes tells of, the moment at which
// enough holders run out, and a poll in case nobody tells anything. Decides when; never asks for the lock itself.
import type { Lost } from "./attempt.js";
import type { Core } from "./core.js";
import { afterExpiryMs, backOffMs, drawDelayMs, safetyPollMs } from "./pacing.js";
import type { Patience } from "./patience.js";

export class Waiting {
  readonly #core: Core;
  readonly #patience: Patience;
  readonly #stops: (() => void)[] = [];
  readonly #releasedBy = new Set<number>();
  readonly #listeningTo = new Set<number>();
  #listeners = 0;
  #fruitless = 0;
  #lostDraws = 0;

  constructor(core: Core, resources: readonly string[], patience: Patience) {
    this.#core = core;
    this.#patience = patience;
    for (const resource of resources) {
      for (const [i, node] of core.nodes.entries()) {
        this.#stops.push(
          node.onReleased(resource, { released: (listeners) => this.#released(i, listeners), listening: () => this.#listening(i) }),
        );
      }
    }
  }

  /** An attempt begins: what was heard before is used up, what is heard from now on may be news. */
  attempting(): void {
    if (this.#wellTold()) this.#lostDraws++;
    this.#releasedBy.clear();
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
    if (this.#wellTold()) forMs = Math.min(forMs, this.#draw());
    else if (this.#listeningTo.size >= policy.quorum) forMs = 0;
    await this.#patience.sleep(forMs);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  // A single release message may be one of an attempt that gave back its part, or the first of a lease that is still held on the other nodes: asking at once would
  // find the rest taken and split the vote. A quorum of messages is a quorum of free nodes.
  #wellTold(): boolean {
    return this.#releasedBy.size >= this.#core.policy.quorum;
  }

  #released(node: number, listeners: number): void {
    const before = this.#wellTold();
    this.#releasedBy.add(node);
    this.#listeners = Math.max(this.#listeners, listeners);
    if (before) return;
    if (this.#wellTold()) {
      this.#fruitless = 0;
      this.#patience.wakeWithin(this.#draw());
    } else if (this.#releasedBy.size === 1) {
      // Messages of the other nodes may be lost with their connections.
      this.#patience.wakeWithin(this.#backOff());
    }
  }

  // What was published before we were listening is lost: ask once more when enough nodes would tell.
  #listening(node: number): void {
    const before = this.#listeningTo.size;
    this.#listeningTo.add(node);
    const { quorum } = this.#core.policy;
    if (before < quorum && this.#listeningTo.size >= quorum) this.#patience.wakeWithin(0);
  }

  #draw(): number {
    return drawDelayMs(this.#listeners - 1, this.#lostDraws, this.#core.clock.random());
  }

  #backOff(): number {
    this.#fruitless++;
    return backOffMs(this.#fruitless, this.#core.policy.retry, this.#core.clock.random());
  }
}

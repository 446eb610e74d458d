// When a caller that waits for a held resource asks again: after a release that a quorum of nodes
// published, when enough holders run out, after a lost vote, and in case every notice was lost:
// while a quorum would notify, one node is looked at now and then; otherwise all are polled.
//
// A release does not wake all waiters. They spread over a few wake slots; a node notifies one slot
// and a second one as its backup. The first slot follows from the token of the released lease: the
// same on every node without any state, and rising, so every slot comes first in turn.
import { retryAfterMs } from "../lease/time-until-free.js";
import { type ReleaseNotice, WAKE_SLOTS } from "../protocol/node.js";
import type { Lost } from "../protocol/outcome.js";
import type { WaitContext } from "./context.js";
import { afterExpiryMs, backOffMs, backupDelayMs, lookMs, safetyPollMs, spreadDelayMs } from "./retry-delay.js";
import type { WaitBudget } from "./wait-budget.js";

/** Timers have whole milliseconds, and may fire by a part of one too early. */
const TIMER_MS = 1;

export class WakeUp {
  readonly #context: WaitContext;
  readonly #budget: WaitBudget;
  readonly #wakeSlot: number;
  #stops: (() => void)[] = [];
  /** Nodes, by index, that notified this waiter first, or at all, or that it is listening to. */
  readonly #notifiedFirst = new Set<number>();
  readonly #notified = new Set<number>();
  readonly #listeningTo = new Set<number>();
  /** By node: the resources whose releases it would publish to this waiter now. */
  #heard: readonly Set<string>[] = [];
  readonly #resources: readonly string[];
  /** When what was heard makes it worth asking again. */
  #dueAt = Number.POSITIVE_INFINITY;
  #listeners = 0;
  #failures = 0;
  #isYielding = false;

  constructor(context: WaitContext, resources: readonly string[], budget: WaitBudget) {
    this.#context = context;
    this.#budget = budget;
    this.#resources = resources;
    this.#wakeSlot = Math.floor(context.clock.random() * WAKE_SLOTS);
    this.#listen();
    context.onMembers.add(this.#moved);
  }

  #listen(): void {
    const { nodes } = this.#context;
    this.#heard = nodes.map(() => new Set());
    for (const resource of this.#resources) {
      for (const [i, node] of nodes.entries()) {
        const listener = {
          released: (notice: ReleaseNotice) => this.#released(i, notice),
          listening: () => this.#listening(i, resource),
          deaf: () => this.#deaf(i, resource),
        };
        this.#stops.push(node.onReleased(resource, this.#wakeSlot, listener));
      }
    }
  }

  /** Other nodes are members. What those that left would say does not count any more. */
  readonly #moved = (): void => {
    this.#stopListening();
    this.asking();
    this.#listen();
    this.#wakeWithin(spreadDelayMs(Number.POSITIVE_INFINITY, this.#context.clock.random()));
  };

  #stopListening(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
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
    if (isPlainlyHeld && this.#isHeard()) return this.#watch(lost);
    if (!isPlainlyHeld) forMs = Math.min(forMs, this.#backOffMs());
    const freeInMs = retryAfterMs(lost, policy);
    if (freeInMs !== undefined) forMs = Math.min(forMs, afterExpiryMs(freeInMs, clock.random()));
    await this.#budget.sleep(Math.min(forMs, this.#noticeDelayMs()));
  }

  // Looks at one of the nodes, in turn, and returns when it has no holder any more, or another:
  // then waiters may not have been notified, or the lock not be marked as having any.
  async #watch(lost: Lost): Promise<void> {
    const { clock, nodes, policy } = this.#context;
    const resource = lost.ballots.find((ballot) => ballot.kind === "held")?.resource ?? "";
    const seeing = [...nodes];
    let freeAt = clock.monotonicMs() + (retryAfterMs(lost, policy) ?? Number.POSITIVE_INFINITY);
    let owner: string | null | undefined;
    this.#dueAt = clock.monotonicMs() + this.#noticeDelayMs();
    for (let turn = Math.floor(clock.random() * seeing.length); seeing.length > 0; turn++) {
      const now = clock.monotonicMs();
      const restMs = Math.min(lookMs(policy.size, policy.retry, clock.random()), afterExpiryMs(freeAt - now, clock.random()));
      await this.#budget.sleep(Math.max(0, Math.min(restMs, this.#dueAt - now)));
      if (this.#budget.isOver || clock.monotonicMs() >= this.#dueAt - TIMER_MS) return;
      const place = turn % seeing.length;
      const ballot = await seeing[place]?.inspect(resource);
      if (ballot?.kind !== "seen") seeing.splice(place, 1);
      else if (ballot.holder === null || ballot.owner !== (owner ?? ballot.owner)) return;
      else {
        owner = ballot.owner;
        freeAt = clock.monotonicMs() + (ballot.remainingMs ?? 0);
      }
    }
  }

  /** Would a quorum notify this waiter of every release? */
  #isHeard(): boolean {
    const nodes = this.#heard.filter(({ size }) => size === this.#resources.length).length;
    return nodes >= this.#context.policy.quorum;
  }

  #wakeWithin(inMs: number): void {
    this.#dueAt = Math.min(this.#dueAt, this.#context.clock.monotonicMs() + inMs);
    this.#budget.wakeWithin(inMs);
  }

  stop(): void {
    this.#context.onMembers.delete(this.#moved);
    this.#stopListening();
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
      this.#wakeWithin(this.#noticeDelayMs());
    } else if (this.#notified.size === 1) {
      // The notices of the other nodes may be lost with their connections.
      this.#wakeWithin(this.#backOffMs() + (rank === 0 ? 0 : backupDelayMs(0)));
    }
  }

  // A notice published before listening began is lost: ask once more when enough nodes would
  // notify.
  #listening(node: number, resource: string): void {
    this.#heard[node]?.add(resource);
    const before = this.#listeningTo.size;
    this.#listeningTo.add(node);
    const { quorum } = this.#context.policy;
    if (!this.#isYielding && before < quorum && this.#listeningTo.size >= quorum) this.#wakeWithin(0);
  }

  #deaf(node: number, resource: string): void {
    const { clock, policy } = this.#context;
    const wasHeard = this.#isHeard();
    this.#heard[node]?.delete(resource);
    if (wasHeard && !this.#isHeard()) this.#wakeWithin(safetyPollMs(policy.retry, clock.random()));
  }

  #backOffMs(): number {
    this.#failures++;
    return backOffMs(this.#failures, this.#context.policy.retry, this.#context.clock.random());
  }
}

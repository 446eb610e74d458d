// Releases whose outcome is unknown, or that the node refused to execute: asked while it could not
// be asked, or on their way when the connection was lost. They are sent when the node is back,
// however late: a node that stood still executes what it had received when it goes on, so a key may
// be younger than its release. Bounded: beyond the bound the time to live frees the resource.
import { type ReleaseQuestion, ROLL_CALL } from "../protocol/node.js";

interface PendingRelease {
  readonly question: ReleaseQuestion;
  readonly until: number;
}

const MAX_PENDING = 10_000;

export class PendingReleases {
  readonly #lifeMs: number;
  readonly #onDropped: (count: number, reason: string) => void;
  #releases: PendingRelease[] = [];
  readonly #refusedSince = new WeakMap<ReleaseQuestion, number>();
  #dropped = 0;
  /** How many there are. A field, since every reply reads it. */
  size = 0;

  /** `lifeMs`: after this long a release may make room for a new one. */
  constructor(lifeMs: number, onDropped: (count: number, reason: string) => void) {
    this.#lifeMs = lifeMs;
    this.#onDropped = onDropped;
  }

  add(asked: ReleaseQuestion, now: number): void {
    // Gives nothing back, and would take the places of those that wait by then.
    if (asked.owner === ROLL_CALL) return;
    const question = withoutTicket(asked);
    if (this.#releases.length >= MAX_PENDING) this.#dropOld(now);
    // The old ones are kept: their keys were there when the connection was lost, while later
    // acquisitions found no node to leave a key on.
    if (this.#releases.length >= MAX_PENDING) this.#dropped++;
    else this.#releases.push({ question, until: now + this.#lifeMs });
    this.size = this.#releases.length;
  }

  /**
   * The node answers, so its keys run out: after the longest life of a key there is nothing to
   * release.
   */
  addRefused(asked: ReleaseQuestion, now: number): void {
    const question = withoutTicket(asked);
    const since = this.#refusedSince.get(question) ?? now;
    this.#refusedSince.set(question, since);
    if (now - since <= this.#lifeMs) this.add(question, now);
  }

  /** Removes and returns the oldest so many. */
  take(atMost = Number.POSITIVE_INFINITY): readonly ReleaseQuestion[] {
    if (this.#dropped > 0) this.#onDropped(this.#dropped, `more than ${MAX_PENDING} were waiting for the node`);
    const due = this.#releases.slice(0, atMost).map(({ question }) => question);
    this.#releases = this.#releases.slice(due.length);
    this.#dropped = 0;
    this.size = this.#releases.length;
    return due;
  }

  #dropOld(now: number): void {
    // In the order of their ends, since all lives are equally long.
    const alive = this.#releases.findIndex(({ until }) => until > now);
    if (alive !== 0) this.#releases = alive < 0 ? [] : this.#releases.slice(alive);
  }
}

/** By the time that it is sent again, the ticket may be that of another caller of this process. */
function withoutTicket(question: ReleaseQuestion): ReleaseQuestion {
  return question.ticket === undefined ? question : { ...question, ticket: undefined };
}

// Releases whose outcome is unknown: asked while the node could not be asked, or on their way when the connection was lost. They are sent again when the node is
// back, unless the key they are about cannot live any more. Bounded: beyond the bound the time to live does their work.
import type { ReleaseQuestion } from "../protocol/node.js";

interface Debt {
  readonly question: ReleaseQuestion;
  readonly until: number;
}

const MAX_DEBTS = 10_000;

export class PendingReleases {
  readonly #lifeMs: number;
  readonly #onDropped: (count: number, reason: string) => void;
  #pendingReleases: Debt[] = [];
  #dropped = 0;

  /** `lifeMs`: the longest that a key can live from now. */
  constructor(lifeMs: number, onDropped: (count: number, reason: string) => void) {
    this.#lifeMs = lifeMs;
    this.#onDropped = onDropped;
  }

  get size(): number {
    return this.#pendingReleases.length;
  }

  add(question: ReleaseQuestion, now: number): void {
    if (this.#pendingReleases.length >= MAX_DEBTS) this.#forgetOld(now);
    // The old ones are kept: they are about keys that were there when the connection was lost; attempts made since found no node to leave anything on.
    if (this.#pendingReleases.length >= MAX_DEBTS) this.#dropped++;
    else this.#pendingReleases.push({ question, until: now + this.#lifeMs });
  }

  /** The oldest so many that are still worth paying; from here on they are the caller's. */
  take(now: number, atMost = Number.POSITIVE_INFINITY): readonly ReleaseQuestion[] {
    this.#forgetOld(now);
    if (this.#dropped > 0) this.#onDropped(this.#dropped, `more than ${MAX_DEBTS} were waiting for the node`);
    const due = this.#pendingReleases.slice(0, atMost).map(({ question }) => question);
    this.#pendingReleases = this.#pendingReleases.slice(due.length);
    this.#dropped = 0;
    return due;
  }

  #forgetOld(now: number): void {
    // In the order of their ends, since all lives are equally long.
    const alive = this.#pendingReleases.findIndex(({ until }) => until > now);
    if (alive !== 0) this.#pendingReleases = alive < 0 ? [] : this.#pendingReleases.slice(alive);
  }
}

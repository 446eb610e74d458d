// How often one caller may ask: a token bucket per principal, refilled by the clock, holding at most one second's worth. Bounded in how many callers it remembers.
// Must not count for authentication, and must not be fair between callers beyond their own buckets.
import { Problem } from "./problem.js";

interface Bucket {
  level: number;
  filledAt: number;
}

const MAX_REMEMBERED_CALLERS = 10_000;

export class RateLimit {
  readonly #buckets = new Map<string, Bucket>();
  readonly #perSecond: number;
  readonly #now: () => number;

  /** `now` is milliseconds on a monotonic clock. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
  }

  take(caller: string): Problem | undefined {
    if (this.#perSecond === 0) return undefined;
    const at = this.#now();
    const bucket = this.#bucket(caller, at);
    bucket.level = Math.min(this.#perSecond, bucket.level + ((at - bucket.filledAt) / 1_000) * this.#perSecond);
    bucket.filledAt = at;
    if (bucket.level >= 1) {
      bucket.level -= 1;
      return undefined;
    }
    const waitSeconds = Math.max(1, Math.ceil((1 - bucket.level) / this.#perSecond));
    return new Problem("rate_limited", `${caller} may send ${this.#perSecond} requests per second.`, {
      retryAfterSeconds: waitSeconds,
      outcome: "not_applied",
    });
  }

  // A caller that is forgotten starts with a full bucket: under pressure by more callers than are remembered the limit is softer, never harder.
  #bucket(caller: string, at: number): Bucket {
    const known = this.#buckets.get(caller);
    if (known !== undefined) return known;
    if (this.#buckets.size >= MAX_REMEMBERED_CALLERS) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    const bucket = { level: this.#perSecond, filledAt: at };
    this.#buckets.set(caller, bucket);
    return bucket;
  }
}

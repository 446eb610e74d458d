// The only source of time, random numbers and secrets in this package: a simulation injects its own
// and repeats a whole run from one seed. Decisions rest on `monotonicMs`; `wallMs` is only compared
// with it, to notice that a machine was suspended (the monotonic clock stands still then). At the
// end, what ends a wait besides the clock: aborted signals, and the last operation under way.
import { randomFillSync } from "node:crypto";

/** What a timer is cleared by. Opaque. */
export type Timer = object;

export interface Clock {
  /**
   * Milliseconds since some moment, never set back; fractions included. Instants on this clock end
   * in `At`.
   */
  monotonicMs(): number;
  /** Unix milliseconds. May jump either way. */
  wallMs(): number;
  /**
   * Calls back once after about delayMs. Keeps the process alive meanwhile: for a caller that
   * waits.
   */
  setTimer(delayMs: number, run: () => void): Timer;
  /** The same without keeping the process alive: for deadlines and housekeeping. */
  setBackgroundTimer(delayMs: number, run: () => void): Timer;
  clearTimer(timer: Timer | undefined): void;
  /** 0 ≤ x < 1, for jitter only. */
  random(): number;
  /** 128 unguessable bits in 22 characters of [A-Za-z0-9_-]: the owner of one acquisition. */
  secret(): string;
}

const SECRET_BYTES = 16;
const POOL_BYTES = SECRET_BYTES * 256;

// Captured when this module is loaded. Fake timers in a user's test would stop the lock but not its
// servers, and a caller would wait for ever.
const { setTimeout, clearTimeout, performance } = globalThis;
const monotonicMs = performance.now.bind(performance);
const wallMs = Date.now;

/**
 * The clock of unit tests: `Date` and the timers as they are at the moment of the call, so that
 * fake ones are used. Whatever else a framework fakes, its monotonic time is that of `Date`.
 */
export function liveClock(): Clock {
  const { random, secret } = systemClock();
  return {
    monotonicMs: () => Date.now(),
    wallMs: () => Date.now(),
    setTimer: (delayMs, run) => globalThis.setTimeout(run, delayMs),
    setBackgroundTimer(delayMs, run) {
      const timer = globalThis.setTimeout(run, delayMs);
      timer.unref?.();
      return timer;
    },
    clearTimer: (timer) => globalThis.clearTimeout(timer as NodeJS.Timeout | undefined),
    random,
    secret,
  };
}

/** The clock of this machine. */
export function systemClock(): Clock {
  // One system call for 256 secrets: a call each costs more than the rest of an acquisition's
  // bookkeeping.
  const pool = Buffer.allocUnsafeSlow(POOL_BYTES);
  let used = POOL_BYTES;
  return {
    monotonicMs,
    wallMs,
    setTimer: (delayMs, run) => setTimeout(run, delayMs),
    setBackgroundTimer: (delayMs, run) => setTimeout(run, delayMs).unref(),
    clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
    random: () => Math.random(),
    secret() {
      if (used === POOL_BYTES) {
        randomFillSync(pool);
        used = 0;
      }
      const secret = pool.toString("base64url", used, used + SECRET_BYTES);
      used += SECRET_BYTES;
      return secret;
    },
  };
}

/**
 * All callers that wait with the same signal share one listener: a process that gives all its calls
 * the signal of its shutdown would otherwise be warned of a listener leak.
 */
const watches = new WeakMap<AbortSignal, Watch>();

class Watch {
  readonly callbacks = new Set<() => void>();
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => {
    for (const run of [...this.callbacks]) run();
  };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort);
  }

  remove(run: () => void): void {
    if (!this.callbacks.delete(run) || this.callbacks.size > 0) return;
    this.#signal.removeEventListener("abort", this.#onAbort);
    watches.delete(this.#signal);
  }
}

/** Calls `run` when the signal aborts. Returns the undo, which must be called in any case. */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  let watch = watches.get(signal);
  if (watch === undefined) {
    watch = new Watch(signal);
    watches.set(signal, watch);
  }
  watch.callbacks.add(run);
  return () => watch.remove(run);
}

/**
 * How many operations of one locker are unfinished, so that close can wait for the last release to
 * leave.
 */
export class InFlight {
  #count = 0;
  #onIdle: (() => void)[] = [];

  begin(): void {
    this.#count++;
  }

  end(): void {
    this.#count--;
    if (this.#count > 0) return;
    const onIdle = this.#onIdle;
    this.#onIdle = [];
    for (const resolve of onIdle) resolve();
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }
}

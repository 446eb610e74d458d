// The only source of time, random numbers and secrets in this package: a simulation injects its own
// and repeats a whole run from one seed. Decisions rest on `monotonicMs`; `wallMs` is only compared
// with it, to notice that a machine was suspended (the monotonic clock stands still then).
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

// The only source of time, chance and secrets in this package. Everything else is given one of these, so that a simulation with one seed can run the whole
// control flow. Only `monotonicMs` may decide anything; `wallMs` is a second opinion for machines that were suspended (the monotonic clock stands still then).
import { randomFillSync } from "node:crypto";

/** What a timer is cleared by. Opaque. */
export type Timer = object;

export interface Clock {
  /** Milliseconds since some moment, never set back; fractions included. Instants on this clock end in `At`. */
  monotonicMs(): number;
  /** Unix milliseconds. May jump either way. */
  wallMs(): number;
  /** Calls back once after about delayMs. Keeps the process alive meanwhile: for somebody who is waiting. */
  setTimer(delayMs: number, run: () => void): Timer;
  /** The same without keeping the process alive: for deadlines and housekeeping. */
  setBackgroundTimer(delayMs: number, run: () => void): Timer;
  clearTimer(timer: Timer | undefined): void;
  /** 0 ≤ x < 1, for jitter only. */
  random(): number;
  /** 128 unguessable bits in 22 characters of [A-Za-z0-9_-]: the owner of one attempt. */
  secret(): string;
}

const SECRET_BYTES = 16;
const POOL_BYTES = SECRET_BYTES * 256;

// As they are when this module is loaded. A test with fake timers would stop the lock, but neither its servers nor the other processes: a caller would wait for ever.
const { setTimeout, clearTimeout, performance } = globalThis;
const monotonicMs = performance.now.bind(performance);
const wallMs = Date.now;

/** The clock of this machine. */
export function systemClock(): Clock {
  // One system call for 256 secrets: a call each costs more than the rest of an attempt's bookkeeping.
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

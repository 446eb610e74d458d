// Moves the wall clock of a Redis server, and checks that the server shows it.
import type { WallClock } from "../clock/wall-clock.js";
import type { Address } from "./provider.js";
import { serverTimeMs } from "./ready.js";

const TOLERANCE_MS = 5_000;

/** A clock, or why there is none that can be moved, as the end of "the clock of n1 …". */
export type ServerClock = WallClock | { readonly fixed: string };

export const realClock: ServerClock = { fixed: 'is real: start the fleet with clock "shiftable" to move it' };

export function serverClock(clock: WallClock | { readonly missing: string }): ServerClock {
  return "missing" in clock ? { fixed: `cannot be moved here: ${clock.missing}` } : clock;
}

export interface ClockOwner {
  readonly name: string;
  readonly clock: ServerClock;
  /**
   * Of a server that answers; one that is paused or killed looks at its clock when it runs again.
   */
  readonly awakeAt: Address | undefined;
}

/** Moves it by so much from where it is now. */
export async function shiftClock({ name, clock, awakeAt }: ClockOwner, byMs: number): Promise<void> {
  if ("fixed" in clock) throw new Error(`the clock of ${name} ${clock.fixed}`);
  clock.shift(byMs);
  if (awakeAt === undefined) return;
  const expected = Date.now() + clock.offsetMs;
  const shown = await serverTimeMs(awakeAt);
  if (Math.abs(shown - expected) > TOLERANCE_MS) {
    throw new Error(`the clock of ${name} did not move: it shows ${shown}, expected about ${expected}`);
  }
}

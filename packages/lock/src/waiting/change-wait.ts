// How long a change of members or fleets is tried. Leases that have to be outwaited take as long as
// they were allowed to last: unless the caller has set a limit, they are waited for on top.
import type { Clock } from "../platform/clock.js";
import type { ChangeLimits } from "../protocol/change-limits.js";

/** What is waited for before it is looked at again. */
export interface Wait {
  readonly why: string;
  readonly waitMs: number;
  /** For leases, which end by themselves; otherwise for something that may never come about. */
  readonly outwaits: boolean;
}

/** By default a change gives up when nothing has come of it for so long, leases aside. */
const TRY_MS = 120_000;
/** How soon it notices that the locker was closed. */
const LOOK_EVERY_MS = 250;
/** The end of leases that is told is right to within so much. */
const TOLD_MS = 1_000;

export class ChangeWait {
  readonly #clock: Clock;
  readonly #limits: ChangeLimits;
  #until: number;
  #told: { readonly why: string; readonly endsAt: number } | undefined;

  constructor(clock: Clock, limits: ChangeLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#until = clock.monotonicMs() + (limits.waitMs ?? TRY_MS);
  }

  /** For one step of the change. */
  get limits(): ChangeLimits {
    const { waitMs, onWait } = this.#limits;
    return { waitMs: waitMs === undefined ? undefined : Math.max(0, this.#until - this.#clock.monotonicMs()), onWait };
  }

  /** A step was taken. */
  movedOn(): void {
    if (this.#limits.waitMs === undefined) this.#until = this.#clock.monotonicMs() + TRY_MS;
  }

  /** False, at once, if there is no time for that; otherwise it may be worth looking again. */
  async for(wait: Wait): Promise<boolean> {
    const endsAt = this.#clock.monotonicMs() + wait.waitMs;
    if (wait.outwaits && this.#limits.waitMs === undefined) this.#until = Math.max(this.#until, endsAt + TRY_MS);
    if (endsAt > this.#until) return false;
    this.#tell(wait, endsAt);
    await new Promise<void>((resolve) => this.#clock.setTimer(Math.min(wait.waitMs, LOOK_EVERY_MS), resolve));
    return true;
  }

  #tell({ why, waitMs, outwaits }: Wait, endsAt: number): void {
    if (this.#told?.why === why && endsAt < this.#told.endsAt + TOLD_MS) return;
    this.#told = { why, endsAt: outwaits ? endsAt : Number.POSITIVE_INFINITY };
    this.#limits.onWait?.(outwaits ? { why, waitMs: Math.ceil(waitMs) } : { why });
  }
}

export function described({ why, waitMs, outwaits }: Wait): string {
  return outwaits ? `${why} for ${Math.ceil(waitMs)} ms more` : why;
}

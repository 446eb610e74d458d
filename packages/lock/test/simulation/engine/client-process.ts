// A client process: its clocks and timers, and whether it runs. A stopped process does nothing;
// when it continues, timers that were due come first and then what arrived meanwhile, as in Node's
// event loop. A dead process never runs again.
import type { Clock, Timer } from "#lock/platform/clock.js";
import type { Chance } from "./chance.js";
import type { PlannedEvent, Timeline } from "./timeline.js";

export interface ProcessClocks {
  /** How fast its clocks run, against true time. */
  readonly rate: number;
  readonly wallAheadMs: number;
}

/** What its monotonic clock shows at the beginning of the world. */
const BEGINNING_MS = 10_000;
/** Each reading of the clock is this much later, so that a loop that waits for a moment ends. */
const LOOK_MS = 0.001;
/** As long as real secrets; the scripts depend on it. */
const SECRET_LENGTH = 22;
/** A timer fires up to this much late. */
const LATENESS_MS = 0.2;

export class ClientProcess implements Clock {
  readonly name: string;
  readonly rate: number;
  state: "running" | "stopped" | "dead" = "running";
  /** When it last began or continued to run. */
  continuedAt = 0;
  readonly #timeline: Timeline;
  readonly #chance: Chance;
  #wallAheadMs: number;
  #secrets = 0;
  #lookedAt = 0;
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];

  constructor(name: string, timeline: Timeline, given: ProcessClocks & { readonly chance: Chance }) {
    this.name = name;
    this.rate = given.rate;
    this.#wallAheadMs = given.wallAheadMs;
    this.#timeline = timeline;
    this.#chance = given.chance;
    this.continuedAt = timeline.now;
  }

  monotonicMs = (): number => {
    this.#lookedAt = Math.max(BEGINNING_MS + this.#timeline.now * this.rate, this.#lookedAt + LOOK_MS);
    return this.#lookedAt;
  };
  wallMs = (): number => Math.floor(this.monotonicMs() + this.#wallAheadMs);
  random = (): number => this.#chance.next();
  secret = (): string => `${this.name}-${++this.#secrets}`.padEnd(SECRET_LENGTH, "_");

  setTimer = (delayMs: number, run: () => void): Timer => {
    // Node counts in whole milliseconds, at least one.
    const wholeMs = Math.max(1, Math.trunc(delayMs));
    const inMs = wholeMs / this.rate + this.#chance.next() * LATENESS_MS;
    const timer: PlannedEvent = this.#timeline.after(inMs, () => this.#due(timer, run));
    return timer;
  };

  setBackgroundTimer = this.setTimer;

  clearTimer = (timer: Timer | undefined): void => {
    if (timer !== undefined) (timer as PlannedEvent).run = undefined;
  };

  /** Input from outside: handled now, or when the process runs again. */
  arrive(run: () => void): void {
    if (this.state === "running") this.#run(run);
    else if (this.state === "stopped") this.#arrivals.push(run);
  }

  /** In its next turn. */
  soon(run: () => void): void {
    this.#timeline.at(this.#timeline.now, () => this.arrive(run));
  }

  stop(): void {
    if (this.state === "running") this.state = "stopped";
  }

  /** Handles what it missed, each in a turn of its own. */
  continue(): void {
    if (this.state !== "stopped") return;
    this.state = "running";
    this.continuedAt = this.#timeline.now;
    const missed = [...this.#timers, ...this.#arrivals];
    this.#timers = [];
    this.#arrivals = [];
    for (const run of missed) this.soon(run);
  }

  die(): void {
    this.state = "dead";
    this.#timers = [];
    this.#arrivals = [];
  }

  /** Sets its wall clock. */
  jumpWall(byMs: number): void {
    this.#wallAheadMs += byMs;
  }

  /** The true moment at which this time will have passed on its clocks. */
  trueMoment(inMs: number): number {
    return this.#timeline.now + inMs / this.rate;
  }

  #due(timer: PlannedEvent, run: () => void): void {
    if (this.state === "running") this.#run(run);
    else if (this.state === "stopped")
      this.#timers.push(() => {
        // A timer that was due earlier may have cleared it.
        if (timer.run !== undefined) run();
      });
  }

  #run(run: () => void): void {
    this.#timeline.beginTurn();
    run();
  }
}

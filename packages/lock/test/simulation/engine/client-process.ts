// A process of a client: its two clocks, its timers, and whether it runs at all. A process that is stopped gets nothing done; when it continues, its timers that were due
// come first and then what arrived meanwhile, as in Node's event loop. A process that died never runs again.
import type { Clock, Timer } from "#lock/platform/clock.js";
import type { Chance } from "./chance.js";
import type { Happening, Timeline } from "./timeline.js";

export interface ProcessClocks {
  /** How fast its clocks run, against true time. */
  readonly rate: number;
  readonly wallAheadMs: number;
}

/** What its monotonic clock shows at the beginning of the world. */
const BEGINNING_MS = 10_000;
/** Work takes time: who looks at the clock again finds it a little later, so that no loop can wait for a moment that never comes. */
const LOOK_MS = 0.001;
/** As long as real ones, which scripts count on. */
const SECRET_LENGTH = 22;
/** A timer goes off up to so much later than it was set to. */
const LATENESS_MS = 0.2;

export class ClientProcess implements Clock {
  readonly name: string;
  readonly rate: number;
  state: "running" | "stopped" | "dead" = "running";
  /** When it last began to run. */
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
    // Node counts in whole milliseconds, and waits for one at least.
    const wholeMs = Math.max(1, Math.trunc(delayMs));
    const inMs = wholeMs / this.rate + this.#chance.next() * LATENESS_MS;
    const timer: Happening = this.#timeline.after(inMs, () => this.#due(timer, run));
    return timer;
  };

  setBackgroundTimer = this.setTimer;

  clearTimer = (timer: Timer | undefined): void => {
    if (timer !== undefined) (timer as Happening).run = undefined;
  };

  /** Something from outside reaches it: now, or when it runs again. */
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

  /** What it missed is done one after another, each in a turn of its own. */
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

  /** The true moment at which so much time will have passed on its clocks. */
  trueMoment(inMs: number): number {
    return this.#timeline.now + inMs / this.rate;
  }

  #due(timer: Happening, run: () => void): void {
    if (this.state === "running") this.#run(run);
    else if (this.state === "stopped")
      this.#timers.push(() => {
        // It may have been cleared by one that was due before it.
        if (timer.run !== undefined) run();
      });
  }

  #run(run: () => void): void {
    this.#timeline.beginTurn();
    run();
  }
}

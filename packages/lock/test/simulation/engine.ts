// Random numbers from a seed. Every actor has a stream of its own, named after it, so that the
// draws of one actor do not change those of another.
import { createHash } from "node:crypto";
import type { Clock, Timer } from "#lock/platform/clock.js";

export class Chance {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
    this.#state = this.#seed;
  }

  /** 0 ≤ x < 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let x = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  }

  /** 0, 1, … below the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  between(least: number, most: number): number {
    return least + (most - least) * this.next();
  }

  any<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** The stream of another actor. */
  of(name: string): Chance {
    return new Chance(mixed(this.#seed, name));
  }
}

/** A number from a number and a name. */
export function mixed(seed: number, name: string): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

// The events of a world in the order of their moments; events of one moment in the order in which
// they were planned. After an event that ran client code, everything that this code left for the
// end of its turn (microtasks, ticks) is done before the next event.

export interface PlannedEvent {
  readonly at: number;
  readonly order: number;
  /** undefined: cancelled. */
  run: (() => void) | undefined;
}

export class Timeline {
  /** True time, in milliseconds since the beginning of the world. */
  now = 0;
  readonly #heap: PlannedEvent[] = [];
  #orders = 0;
  #inTurn = false;

  /** Plans an event. Removing its `run` cancels it. */
  at(at: number, run: () => void): PlannedEvent {
    const planned = { at: Math.max(at, this.now), order: this.#orders++, run };
    const heap = this.#heap;
    let index = heap.length;
    heap.push(planned);
    while (index > 0) {
      const up = (index - 1) >> 1;
      const parent = heap[up] as PlannedEvent;
      if (parent.at < planned.at || (parent.at === planned.at && parent.order < planned.order)) break;
      heap[index] = parent;
      index = up;
    }
    heap[index] = planned;
    return planned;
  }

  after(ms: number, run: () => void): PlannedEvent {
    return this.at(this.now + ms, run);
  }

  /** Called by an event that runs client code. */
  beginTurn(): void {
    this.#inTurn = true;
  }

  /** Runs events until `isOver`, or until no event is left. */
  play(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        try {
          while (!isOver()) {
            const next = this.#next();
            if (next === undefined) break;
            this.now = next.at;
            next.run?.();
            if (!this.#inTurn) continue;
            this.#inTurn = false;
            setImmediate(go);
            return;
          }
          resolve();
        } catch (error) {
          reject(error);
        }
      };
      setImmediate(go);
    });
  }

  #next(): PlannedEvent | undefined {
    let first = this.#take();
    while (first !== undefined && first.run === undefined) first = this.#take();
    return first;
  }

  #take(): PlannedEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      let child = heap[below] as PlannedEvent;
      const other = heap[below + 1];
      if (other !== undefined && (other.at < child.at || (other.at === child.at && other.order < child.order))) {
        child = other;
        below++;
      }
      if (last.at < child.at || (last.at === child.at && last.order < child.order)) break;
      heap[index] = child;
      index = below;
    }
    heap[index] = last;
    return first;
  }
}

// The trace of a world: a line per event. Keeping it changes nothing in the world.
export class Trace {
  readonly lines: string[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  log(actor: string, what: string): void {
    this.lines.push(`${this.#now().toFixed(3).padStart(11)}  ${actor.padEnd(7)} ${what.replace(/_{2,}/g, "")}`);
  }

  get hash(): string {
    return createHash("sha256").update(this.lines.join("\n")).digest("hex").slice(0, 16);
  }
}

// A client process: its clocks and timers, and whether it runs. A stopped process does nothing;
// when it continues, timers that were due come first and then what arrived meanwhile, as in Node's
// event loop. A dead process never runs again.

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

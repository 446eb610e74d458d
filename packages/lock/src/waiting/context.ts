// What every part of waiting is given: the context of the algorithm, the queue of the callers of this
// process, and the resources that others waited for when it released them.
import type { LeaseContext, Lost } from "../lease/context.js";
import type { Clock } from "../platform/clock.js";
import type { ReleaseBallot } from "../protocol/ballot.js";
import type { Ballots } from "../quorum.js";
import type { LookTimer, Waiters } from "./wait-budget.js";

export interface WaitContext extends LeaseContext {
  readonly queuedResources: QueuedResources;
  readonly looks: LookTimer;
  /** By what is wanted: of the callers that want the same only the first asks the nodes. */
  readonly resourceQueue: LocalQueue;
  readonly waiters: Waiters;
  /** Called when other nodes are members. */
  readonly onMembers: Set<() => void>;
}

/** Of a process in the queues of the nodes: since when it waits, by both of its clocks. */
export interface Place {
  readonly sinceMs: number;
  readonly beganAt: number;
}

interface Line {
  inside: number;
  /** Made for the first one that waits: an uncontended acquire needs none. */
  waiting: Set<() => void> | undefined;
  /**
   * How the one inside last failed, for callers behind it whose time ends before they have asked.
   */
  lastLoss: Lost | undefined;
  /** What the one before has left to the one inside. */
  place: Place | undefined;
}

/**
 * First in, first out inside one process. Under each key so many callers may be inside at the same
 * time: of those that want the same only the first asks the nodes; of all calls of a locker, 1 024.
 */
export class LocalQueue {
  readonly #width: number;
  readonly #lines = new Map<string, Line>();

  constructor(width: number) {
    this.#width = width;
  }

  /** Whether the caller is inside at once; then it must `leave`. */
  tryEnter(key: string): boolean {
    const line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, { inside: 1, waiting: undefined, lastLoss: undefined, place: undefined });
    else if (line.inside === this.#width) return false;
    else line.inside++;
    return true;
  }

  /**
   * Queues up; `onTurn` is called when the caller is inside, and then it must `leave`. Returns how
   * to step out of the queue before that.
   */
  enqueue(key: string, onTurn: () => void): () => void {
    const line = this.#lines.get(key);
    if (line === undefined) throw new Error("a queue begins behind a caller that is inside");
    line.waiting ??= new Set();
    const { waiting } = line;
    waiting.add(onTurn);
    return () => waiting.delete(onTurn);
  }

  /** Lets the next one in, which inherits the place. False if there is none. */
  leave(key: string, place?: Place): boolean {
    const line = this.#lines.get(key);
    if (line === undefined) return false;
    const { waiting } = line;
    if (waiting !== undefined && waiting.size > 0) {
      const [next] = waiting;
      if (next !== undefined) waiting.delete(next);
      line.place = place;
      next?.();
      return true;
    }
    line.inside--;
    if (line.inside === 0) this.#lines.delete(key);
    return false;
  }

  /** Of the one inside, if the one before it has left it. */
  placeOf(key: string): Place | undefined {
    return this.#lines.get(key)?.place;
  }

  /** A caller of this process is inside, or waits. */
  isOccupied(key: string): boolean {
    return this.#lines.has(key);
  }

  /** How many wait behind those inside. */
  length(key: string): number {
    return this.#lines.get(key)?.waiting?.size ?? 0;
  }

  noteLoss(key: string, lost: Lost): void {
    const line = this.#lines.get(key);
    if (line !== undefined) line.lastLoss = lost;
  }

  lastLoss(key: string): Lost | undefined {
    return this.#lines.get(key)?.lastLoss;
  }
}

const REMEMBERED_MS = 1_000;
/** Beyond the bound all are forgotten: that only costs a request. */
const MOST = 1_024;

/**
 * Resources that others waited for when this process released them: its next caller takes a place
 * in the queue with its first request, instead of being refused once more before it waits.
 */
export class QueuedResources {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  released(resources: readonly string[], ballots: Ballots<ReleaseBallot>): void {
    if (!ballots.some((ballot) => ballot?.kind === "released" && ballot.listeners > 0)) return;
    if (this.#until.size >= MOST) this.#until.clear();
    const until = this.#clock.monotonicMs() + REMEMBERED_MS;
    for (const resource of resources) this.#until.set(resource, until);
  }

  hasOneOf(resources: readonly string[]): boolean {
    if (this.#until.size === 0) return false;
    const now = this.#clock.monotonicMs();
    return resources.some((resource) => {
      const until = this.#until.get(resource);
      if (until === undefined || until > now) return until !== undefined;
      this.#until.delete(resource);
      return false;
    });
  }
}

// The callers of one process among themselves: who asks the nodes first, and since when the process
// stands in the queues of the nodes.

/**
 * Callers of several resources queue only behind those of the very same: in the line of each they
 * would keep others from one that is free while they wait for the rest. The nodes take all or none.
 */
export function lineOf(resources: readonly string[]): string {
  // No resource contains a lone surrogate.
  return resources.length === 1 ? (resources[0] ?? "") : [...resources].sort().join("\ud800");
}

/** Since when a process stands in the queues of the nodes, by both of its clocks. */
export interface Since {
  readonly sinceMs: number;
  readonly beganAt: number;
}

/** What a caller leaves to the next one of its process, with the turn. */
export interface Left {
  /** Since when the process waits; undefined: the nodes were not asked, or it has the lock. */
  readonly since?: Since | undefined;
  /** The lease, if it has the lock. */
  readonly lease?: { remainingMs(): number } | undefined;
}

interface Line<Loss> {
  inside: number;
  /** Made for the first one that waits: an uncontended acquire needs none. */
  waiting: Set<() => void> | undefined;
  /**
   * How the one inside last failed, for callers behind it whose time ends before they have asked.
   */
  lastLoss: Loss | undefined;
  /** To the one inside, by the one before. */
  left: Left | undefined;
  /** The one inside takes over a lease of its process that is given back, if it sleeps. */
  follow: ((owner: string) => void) | undefined;
}

/**
 * First in, first out inside one process. Under each key so many callers may be inside at the same
 * time: of those that want the same only the first asks the nodes; of all calls of a locker, 1 024.
 */
export class LocalQueue<Loss = never> {
  readonly #width: number;
  readonly #lines = new Map<string, Line<Loss>>();

  constructor(width: number) {
    this.#width = width;
  }

  /** Whether the caller is inside at once; then it must `leave`. */
  tryEnter(key: string): boolean {
    const line = this.#lines.get(key);
    if (line === undefined)
      this.#lines.set(key, { inside: 1, waiting: undefined, lastLoss: undefined, left: undefined, follow: undefined });
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

  /** Lets the next one in, to which that is left. False if there is none. */
  leave(key: string, left?: Left): boolean {
    const line = this.#lines.get(key);
    if (line === undefined) return false;
    const { waiting } = line;
    if (waiting !== undefined && waiting.size > 0) {
      const [next] = waiting;
      if (next !== undefined) waiting.delete(next);
      line.left = left;
      line.follow = undefined;
      next?.();
      return true;
    }
    line.inside--;
    if (line.inside === 0) this.#lines.delete(key);
    return false;
  }

  /** To the one inside, by the one before it. */
  leftTo(key: string): Left | undefined {
    return this.#lines.get(key)?.left;
  }

  /** From now on the one inside is told of leases of this process that are given back. */
  onRelease(key: string, follow: (owner: string) => void): void {
    const line = this.#lines.get(key);
    if (line !== undefined) line.follow = follow;
  }

  /** About to be given back. */
  released(key: string, owner: string): void {
    this.#lines.get(key)?.follow?.(owner);
  }

  /** A caller of this process is inside, or waits. */
  isOccupied(key: string): boolean {
    return this.#lines.has(key);
  }

  /** How many wait behind those inside. */
  length(key: string): number {
    return this.#lines.get(key)?.waiting?.size ?? 0;
  }

  noteLoss(key: string, lost: Loss): void {
    const line = this.#lines.get(key);
    if (line !== undefined) line.lastLoss = lost;
  }

  lastLoss(key: string): Loss | undefined {
    return this.#lines.get(key)?.lastLoss;
  }
}

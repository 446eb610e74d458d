// One direction between a process and a node: how long bytes take, and whether they pass. Held
// bytes pass once it is open again; on one connection nothing overtakes.
import type { Chance } from "../engine/chance.js";
import type { Timeline } from "../engine/timeline.js";

export interface Speed {
  readonly leastMs: number;
  /** Random addition, mostly small. */
  readonly jitterMs: number;
}

export class Direction {
  /** Addition while a fault lasts. */
  slowerMs = 0;
  readonly #timeline: Timeline;
  readonly #speed: Speed;
  readonly #chance: Chance;
  #isHeld = false;
  #waiting: (() => void)[] = [];

  constructor(timeline: Timeline, speed: Speed, chance: Chance) {
    this.#timeline = timeline;
    this.#speed = speed;
    this.#chance = chance;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  delayMs(): number {
    const x = this.#chance.next();
    return this.#speed.leastMs + this.#speed.jitterMs * x * x * x + this.slowerMs;
  }

  hold(): void {
    this.#isHeld = true;
  }

  open(): void {
    this.#isHeld = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) this.#timeline.after(this.delayMs(), go);
  }

  /** Continues when the direction is open again. */
  wait(go: () => void): void {
    this.#waiting.push(go);
  }
}

/** Messages in one direction of one connection, in the order in which they were sent. */
export class Pipe<Message> {
  readonly #timeline: Timeline;
  readonly #way: Direction;
  readonly #deliver: (message: Message) => void;
  #queue: Message[] = [];
  #head = 0;
  #lastAt = 0;
  readonly #arrived = (): void => this.#arrive();

  constructor(timeline: Timeline, way: Direction, deliver: (message: Message) => void) {
    this.#timeline = timeline;
    this.#way = way;
    this.#deliver = deliver;
  }

  get length(): number {
    return this.#queue.length - this.#head;
  }

  send(message: Message): void {
    this.#queue.push(message);
    this.#lastAt = Math.max(this.#lastAt, this.#timeline.now + this.#way.delayMs());
    this.#timeline.at(this.#lastAt, this.#arrived);
  }

  /** Of the messages under way only the first `count` arrive. */
  keep(count: number): void {
    this.#queue.length = Math.min(this.#queue.length, this.#head + count);
  }

  // Each arrival delivers the first message, so nothing overtakes where some arrivals were held.
  #arrive(): void {
    if (this.#head >= this.#queue.length) return;
    if (this.#way.isHeld) {
      this.#way.wait(this.#arrived);
      return;
    }
    const message = this.#queue[this.#head++] as Message;
    if (this.#head > 64 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    this.#deliver(message);
  }
}

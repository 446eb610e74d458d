// The worker processes of a run: starts them, tells them what to do, stops, kills and replaces
// them, hears what they report.
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Child, startNode } from "@palisade/testkit";
import { type FromWorker, noTally, type Orders, type Reading, type Tally, type ToWorker } from "../traffic/messages.js";

/** Compiled also for the tests, which run from the sources. */
const program = fileURLToPath(new URL("../../dist/traffic/worker.js", import.meta.url));
/** SIGCONT is repeated until the worker is awake: it may stop itself after its message arrived. */
const AGAIN_MS = 100;
const LOOK_EVERY_MS = 10;

export interface Place {
  readonly name: string;
  /** For the first process in this place, the second, and so on. */
  readonly orders: (startNumber: number) => Orders;
}

export class Worker {
  readonly name: string;
  /** What it last said of itself, and when. */
  last: { readonly reading: Reading; readonly at: number } | undefined;
  readonly #place: Place;
  readonly #workers: Workers;
  readonly #said = new Set<FromWorker["kind"]>();
  #child: Child;
  #startNumber = 0;
  /** Whether it is this harness that ends the process. */
  #isBeingKilled = false;
  #waker: NodeJS.Timeout | undefined;
  #lastWord: ToWorker | undefined;

  constructor(place: Place, workers: Workers) {
    this.name = place.name;
    this.#place = place;
    this.#workers = workers;
    this.#child = this.#start();
  }

  get child(): Child {
    return this.#child;
  }

  /** Whether its process has ended by itself, or by a signal that is not the harness's. */
  get isLost(): boolean {
    const { exit } = this.#child;
    return exit !== undefined && !(this.#isBeingKilled && exit.signal === "SIGKILL");
  }

  has(kind: "ready" | "done"): boolean {
    return this.#said.has(kind);
  }

  tell(word: ToWorker): void {
    this.#lastWord = word;
    if (this.has("ready")) this.#child.send(word);
  }

  /** SIGSTOP from outside, at any point of its work; but not while it has stopped itself. */
  stop(): void {
    if (this.#waker === undefined) this.#child.signal("SIGSTOP");
  }

  continue(): void {
    this.#child.signal("SIGCONT");
  }

  /** SIGKILL, and another process in its place. */
  async replace(): Promise<void> {
    this.#wake();
    this.#said.clear();
    this.#isBeingKilled = true;
    await this.#child.kill();
    this.#startNumber++;
    this.#child = this.#start();
    this.#isBeingKilled = false;
  }

  async end(): Promise<void> {
    this.#wake();
    this.#isBeingKilled = true;
    await this.#child.kill();
  }

  #start(): Child {
    const startNumber = this.#startNumber;
    const orders = this.#place.orders(startNumber);
    return startNode(program, [JSON.stringify(orders)], {
      name: orders.name,
      onMessage: (word) => startNumber === this.#startNumber && this.#hear(word as FromWorker),
    });
  }

  #hear(word: FromWorker): void {
    if (word.kind === "tally") this.#workers.count(word.tally);
    else if (word.kind === "reading") {
      this.last = { reading: word.reading, at: performance.now() };
      this.#workers.onReading(word.reading);
    } else if (word.kind === "asleep") {
      this.#workers.pauses++;
      this.#wakeLater(word.forMs);
    } else if (word.kind === "awake") this.#wake();
    else this.#said.add(word.kind);
    // A replacement hears what the others were told before it was ready.
    if (word.kind === "ready" && this.#lastWord !== undefined) {
      this.#child.send({ kind: "go" });
      if (this.#lastWord.kind !== "go") this.#child.send(this.#lastWord);
    }
  }

  #wakeLater(inMs: number): void {
    this.#waker = setTimeout(() => {
      if (this.#child.signal("SIGCONT")) this.#wakeLater(AGAIN_MS);
    }, inMs);
  }

  #wake(): void {
    clearTimeout(this.#waker);
    this.#waker = undefined;
  }
}

export class Workers implements AsyncDisposable {
  readonly all: readonly Worker[];
  /** Of all workers since the beginning. */
  readonly tally = { ...noTally };
  /** How often a worker stopped itself in the middle of its work. */
  pauses = 0;
  onReading: (reading: Reading) => void = () => {};

  constructor(places: readonly Place[]) {
    this.all = places.map((place) => new Worker(place, this));
  }

  get pids(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.all.map(({ name, child }) => [name, child.pid]));
  }

  tell(word: ToWorker): void {
    for (const worker of this.all) worker.tell(word);
  }

  /** True when all have said so, false when the signal comes first; fails when one has ended. */
  async said(kind: "ready" | "done", signal?: AbortSignal): Promise<boolean> {
    for (; ; await sleep(LOOK_EVERY_MS, undefined, { ref: false })) {
      const lost = this.all.find(({ isLost }) => isLost)?.child;
      if (lost !== undefined) {
        await lost.waitForExit();
        throw new Error(lost.howItEnded());
      }
      if (this.all.every((worker) => worker.has(kind))) return true;
      if (signal?.aborted) return false;
    }
  }

  /** All close what they have open and exit. */
  async leave(): Promise<void> {
    this.tell({ kind: "leave" });
    const exits = await Promise.all(this.all.map(({ child }) => child.waitForExit()));
    const failed = exits.findIndex(({ code }) => code !== 0);
    if (failed >= 0) throw new Error(this.all[failed]?.child.howItEnded());
  }

  count(tally: Tally): void {
    for (const key of Object.keys(tally) as (keyof Tally)[]) this.tally[key] += tally[key];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((worker) => worker.end()));
  }
}

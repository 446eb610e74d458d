// The worker processes of a run: starts them, asks them to work, stops, kills and replaces them,
// hears what they report; and the course of the run.
import { fileURLToPath } from "node:url";
import { AskedChild } from "@palisade/testkit";
import { nowMs, type Span } from "../history.js";
import { type Ask, noTally, type Orders, type Tally, type Told } from "../traffic/messages.js";

/** Compiled also for the tests, which run from the sources. */
const program = fileURLToPath(new URL("../../dist/traffic/worker.js", import.meta.url));
/** SIGCONT is repeated until the worker is awake: it may stop itself after its message arrived. */
const AGAIN_MS = 100;

export interface Place {
  readonly name: string;
  /** For the first process in this place, the second, and so on. */
  readonly orders: (startNumber: number) => Orders;
}

/** A place, whose process fails the run with its last words if it ends by itself. */
export class Worker {
  readonly name: string;
  readonly #place: Place;
  readonly #workers: Workers;
  #process: AskedChild<Ask, Told>;
  #startNumber = 0;
  /** When the process of now can begin. */
  #ready: Promise<unknown> = Promise.resolve();
  /** While it is this harness that ends the process: until another one is in its place. */
  #replaced: Promise<void> | undefined;
  #isFinishing = false;
  #waker: NodeJS.Timeout | undefined;

  constructor(place: Place, workers: Workers) {
    this.name = place.name;
    this.#place = place;
    this.#workers = workers;
    this.#process = this.#start();
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** When it can begin. */
  async ready(): Promise<void> {
    await this.#ready;
  }

  /** Until its last operation has ended, in whichever process. */
  async work(): Promise<void> {
    for (;;) {
      try {
        await this.#ready;
        return await this.#process.ask("work");
      } catch (error) {
        if (this.#replaced === undefined) throw error;
        await this.#replaced;
      }
    }
  }

  /** No more operations, but for the last one. */
  finish(): void {
    this.#isFinishing = true;
    this.#askToFinish();
  }

  /** Closes what it has open, and ends. */
  async leave(): Promise<void> {
    await this.#process.ask("leave");
    await this.end();
  }

  /** SIGSTOP from outside, at any point of its work; but not while it has stopped itself. */
  stop(): void {
    if (this.#waker === undefined) this.#process.child.signal("SIGSTOP");
  }

  continue(): void {
    this.#process.child.signal("SIGCONT");
  }

  /** SIGKILL, and another process in its place. */
  async replace(): Promise<void> {
    this.#replaced = this.end().then(() => {
      this.#startNumber++;
      this.#process = this.#start();
      if (this.#isFinishing) this.#askToFinish();
    });
    await this.#replaced;
    this.#replaced = undefined;
  }

  async end(): Promise<void> {
    this.#wake();
    await this.#process.kill();
  }

  #start(): AskedChild<Ask, Told> {
    const orders = this.#place.orders(this.#startNumber);
    const process = new AskedChild<Ask, Told>(program, { name: orders.name });
    process.onTold = (told) => process === this.#process && this.#hear(told);
    this.#ready = process.ask({ orders });
    this.#ready.catch(ignored); // Whoever waits for it is told.
    return process;
  }

  #askToFinish(): void {
    this.#process.ask("finish").catch(ignored); // It has ended: that fails its work as well.
  }

  #hear(told: Told): void {
    if (told.kind === "tally") this.#workers.count(told.tally);
    else if (told.kind === "asleep") {
      this.#workers.pauses++;
      this.#wakeLater(told.forMs);
    } else this.#wake();
  }

  #wakeLater(inMs: number): void {
    this.#waker = setTimeout(() => {
      if (this.#process.child.signal("SIGCONT")) this.#wakeLater(AGAIN_MS);
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

  constructor(places: readonly Place[]) {
    this.all = places.map((place) => new Worker(place, this));
  }

  async ready(): Promise<void> {
    await Promise.all(this.all.map((worker) => worker.ready()));
  }

  /** True when all have ended their last operation, false when the signal comes first. */
  async work(giveUp: AbortSignal): Promise<boolean> {
    const given = new Promise<false>((resolve) => giveUp.addEventListener("abort", () => resolve(false), { once: true }));
    return await Promise.race([Promise.all(this.all.map((worker) => worker.work())).then(() => true), given]);
  }

  finish(): void {
    for (const worker of this.all) worker.finish();
  }

  async leave(): Promise<void> {
    await Promise.all(this.all.map((worker) => worker.leave()));
  }

  count(tally: Tally): void {
    for (const key of Object.keys(tally) as (keyof Tally)[]) this.tally[key] += tally[key];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((worker) => worker.end()));
  }
}

function ignored(): void {}

// The course of every run, once its servers stand: start the clients' work, inject faults meanwhile, undo the faults,
// let the clients finish. What is left is collected and judged by the caller while the servers still stand.

export interface Signals {
  /** No new faults; those that last are undone. */
  readonly over: AbortSignal;
  /** No more waiting for what does not recover. */
  readonly giveUp: AbortSignal;
}

export interface Course {
  inject(signals: Signals): Promise<void>;
  /** How long faults are injected. `done` settles when all workers are, or one has failed. */
  traffic(done: Promise<unknown>): Promise<void>;
  /** From the undoing of the faults to the last answer, at most. */
  readonly recoveryMs: number;
  onPhase?(phase: string): void;
}

/** The time in which there were faults, and whether all workers ended their last operation in time. */
export interface Ran {
  readonly span: Span;
  readonly isRecovered: boolean;
}

export async function run(workers: Workers, course: Course): Promise<Ran> {
  const { recoveryMs, onPhase = () => {} } = course;
  await workers.ready();
  onPhase("under faults");
  const [over, giveUp] = [new AbortController(), new AbortController()];
  const fromAt = nowMs();
  const done = workers.work(giveUp.signal);
  done.catch(() => over.abort()); // A worker has failed; the error is thrown where `done` is awaited.
  const faults = course.inject({ over: over.signal, giveUp: giveUp.signal });
  let overdue: NodeJS.Timeout | undefined;
  let ran: Ran;
  try {
    try {
      await Promise.race([course.traffic(done), failed(done), failed(faults)]);
    } finally {
      onPhase("undoing faults");
      // One limit for both: what the undoing takes is missing for the recovery.
      overdue = setTimeout(() => giveUp.abort(), recoveryMs);
      over.abort();
      await faults;
    }
    onPhase("recovering");
    const span = { fromAt, untilAt: nowMs() };
    workers.finish();
    ran = { span, isRecovered: await done };
  } finally {
    clearTimeout(overdue);
    giveUp.abort(); // If it failed: nobody is waited for any longer.
  }
  if (ran.isRecovered) await workers.leave();
  else await workers[Symbol.asyncDispose](); // No writes while the end is looked at.
  onPhase("collecting");
  return ran;
}

/** Rejects with it, and never resolves. */
async function failed(work: Promise<unknown>): Promise<never> {
  await work;
  return await new Promise<never>(() => {});
}

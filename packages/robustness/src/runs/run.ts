// The course of every run: start the servers, start the clients, inject faults while the clients
// work, undo the faults, let the clients finish. What is left is collected and judged by the
// profile while its servers still stand.
import { nowMs, type Span } from "../history.js";
import type { Workers } from "./workers.js";

export interface Signals {
  /** No new faults; those that last are undone. */
  readonly over: AbortSignal;
  /** No more waiting for what does not recover. */
  readonly giveUp: AbortSignal;
}

export interface Course<Environment> {
  start(): Promise<Environment>;
  inject(environment: Environment, signals: Signals): Promise<void>;
  /** How long faults are injected. `done` settles when all workers are, or one has failed. */
  traffic(environment: Environment, done: Promise<unknown>): Promise<void>;
  /** From the undoing of the faults to the last answer, at most. */
  readonly recoveryMs: number;
  onPhase?(phase: string): void;
  /** The clients are killed in the middle of what they do. */
  readonly interrupted?: AbortSignal;
}

export interface Ran<Environment> {
  readonly environment: Environment;
  /** The time in which there were faults. */
  readonly span: Span;
  /** Whether all workers ended their last operation in time. */
  readonly isRecovered: boolean;
}

export async function run<Environment extends { readonly workers: Workers }>(course: Course<Environment>): Promise<Ran<Environment>> {
  course.onPhase?.("starting");
  const environment = await course.start();
  const { workers } = environment;
  await workers.said("ready");
  const ran = await runCourse(course, environment);
  if (ran.isRecovered) await workers.leave();
  else await workers[Symbol.asyncDispose](); // No writes while the end is looked at.
  course.onPhase?.("collecting");
  return ran;
}

/** From the first order to the last answer. */
async function runCourse<Environment extends { readonly workers: Workers }>(
  course: Course<Environment>,
  environment: Environment,
): Promise<Ran<Environment>> {
  const { recoveryMs, interrupted } = course;
  const { workers } = environment;
  course.onPhase?.("under faults");
  const [over, giveUp] = [new AbortController(), new AbortController()];
  const fromAt = nowMs();
  workers.tell({ kind: "go" });
  const done = workers.said("done", giveUp.signal);
  done.catch(() => over.abort()); // A worker has failed; the error is thrown where `done` is awaited.
  const faults = course.inject(environment, { over: over.signal, giveUp: giveUp.signal });
  let overdue: NodeJS.Timeout | undefined;
  try {
    try {
      await Promise.race([course.traffic(environment, done), failed(done), failed(faults)]);
    } finally {
      course.onPhase?.("undoing faults");
      // One limit for both: what the undoing takes is missing for the recovery.
      overdue = setTimeout(() => giveUp.abort(), recoveryMs);
      over.abort();
      await faults;
    }
    course.onPhase?.("recovering");
    const span = { fromAt, untilAt: nowMs() };
    if (interrupted?.aborted) giveUp.abort();
    workers.tell({ kind: "finish" });
    return { environment, span, isRecovered: await done };
  } finally {
    clearTimeout(overdue);
    giveUp.abort(); // If it failed: nobody is waited for any longer.
  }
}

/** Rejects with it, and never resolves. */
async function failed(work: Promise<unknown>): Promise<never> {
  await work;
  return await new Promise<never>(() => {});
}

export class Closers implements AsyncDisposable {
  readonly #open: AsyncDisposable[] = [];

  use<Opened extends AsyncDisposable>(opened: Opened): Opened {
    this.#open.push(opened);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const opened of this.#open.splice(0).reverse()) {
      try {
        await opened[Symbol.asyncDispose]();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, "not everything could be closed");
  }
}

// The course of every run, once its servers stand: start the clients' work, inject faults meanwhile, undo the faults,
// let the clients finish. What is left is collected and judged by the caller while the servers still stand.
import { nowMs, type Span } from "../history.js";
import type { Workers } from "./workers.js";

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

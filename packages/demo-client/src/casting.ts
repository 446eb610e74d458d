// What an actor is made of, and what its verbs take and give beside what the worker process itself does. Decides nothing.
import type { WorkerProcess } from "./worker-process.js";
import type { WriteResult } from "./worker-protocol.js";

/** A write that was decided upon or sent, and is not yet answered. */
export interface Pending {
  readonly answer: Promise<WriteResult>;
}

/** What an actor is made of. */
export interface Casting {
  readonly name: string;
  readonly process: WorkerProcess;
  /** Whether the process can be used for another act. */
  readonly afterwards: "comes_back" | "ends";
}

/** How a lease is asked for; the story's ttl and no renewal when absent. */
export interface Keep {
  readonly ttlMs?: number;
  readonly renew?: boolean;
}

// The program of a worker: a process that does what it is asked and answers what came of it.
import { answerParent } from "@palisade/testkit";
import type { WorkerCall, WorkerConfig, WorkerEvent } from "./protocol.js";
import { Worker } from "./worker.js";

let worker: Worker | undefined;

const tell = answerParent<WorkerCall, WorkerEvent>(async ({ verb, args }) => {
  if (verb === "joins") {
    worker = new Worker(args[0] as WorkerConfig, tell);
    return await worker.ready();
  }
  if (worker === undefined) throw new Error(`${verb} was asked of a worker that has joined no act`);
  const method = worker[verb as keyof Worker] as (...args: readonly unknown[]) => Promise<unknown>;
  return await method.apply(worker, [...args]);
});

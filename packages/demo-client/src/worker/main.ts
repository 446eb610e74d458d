// The program of a worker: a process that does what it is sent and answers what came of it.
import { type Report, type Request, UnexpectedOutcome, type WorkerConfig } from "./protocol.js";
import { Worker } from "./worker.js";

let worker: Worker | undefined;

function send(report: Report): void {
  process.send?.(report);
}

async function perform({ verb, args }: Request): Promise<unknown> {
  if (verb === "joins") {
    worker = new Worker(args[0] as WorkerConfig, send);
    return await worker.ready();
  }
  if (worker === undefined) throw new Error(`${verb} was asked of a worker that has joined no act`);
  const method = worker[verb as keyof Worker] as (...args: readonly unknown[]) => Promise<unknown>;
  return await method.apply(worker, [...args]);
}

process.on("message", (message) => {
  const request = message as Request;
  const { id } = request;
  perform(request).then(
    (answer) => send({ id, answer }),
    (error: Error) => {
      const unexpected = error instanceof UnexpectedOutcome;
      send({ id, failure: unexpected ? error.message : (error.stack ?? String(error)), unexpected });
    },
  );
});
process.once("disconnect", () => process.exit());

// The worker processes of a run: starts them ahead of time, lends them to one act after another, and ends them all. Decides nothing they do.
import { WorkerProcess } from "./worker-process.js";

export class Crew implements AsyncDisposable {
  readonly #everybody = new Set<WorkerProcess>();
  readonly #free: WorkerProcess[] = [];
  #ended = false;

  /** Has at least so many ready or getting ready, while something else takes its time. */
  prepare(count: number): void {
    while (this.#free.length < count) this.#free.push(this.#start());
  }

  hire(): WorkerProcess {
    return this.#free.shift() ?? this.#start();
  }

  /** Back from an act, for the next one; one that was stopped or is stuck does not come back. */
  async dismiss(worker: WorkerProcess, state: "well" | "unwell"): Promise<void> {
    if (state === "well" && worker.alive && !this.#ended) {
      await worker.ask("leave", {});
      worker.listen(() => undefined);
      this.#free.push(worker);
      return;
    }
    this.#everybody.delete(worker);
    await worker.kill();
  }

  /** Ends every one of them at once; whatever they were asked is answered with an error. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all([...this.#everybody].map((worker) => worker.kill()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  #start(): WorkerProcess {
    const worker = new WorkerProcess();
    this.#everybody.add(worker);
    return worker;
  }
}

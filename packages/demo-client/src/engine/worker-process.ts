// Worker processes from the outside: one that is sent requests, stopped and resumed, and the pool
// of all of them in a run.
import { readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";
import { type Report, UnexpectedOutcome } from "../worker/protocol.js";

/** Always the compiled one, also when this file is run from its source. */
const program = fileURLToPath(new URL("../../dist/worker/main.js", import.meta.url));
const STOP_TIMEOUT_MS = 10_000;

/** What a worker reports on its own, between its answers. */
export type WorkerEvent = Extract<Report, { readonly event: string }>;

interface PendingAnswer {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (reason: Error) => void;
}

export class WorkerProcess {
  readonly #child: Child;
  readonly #pending = new Map<number, PendingAnswer>();
  #lastId = 0;
  #onEvent: (event: WorkerEvent) => void = () => undefined;

  constructor() {
    this.#child = startChild({
      command: process.execPath,
      args: [program],
      name: "worker",
      onMessage: (message) => this.#heard(message as Report),
    });
    void this.#child.waitForExit().then(() => {
      for (const { reject } of this.#pending.values()) reject(new Error(this.#child.howItEnded()));
      this.#pending.clear();
    });
  }

  get pid(): number {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#child.alive;
  }

  /** In place of the listener before. */
  listen(onEvent: (event: WorkerEvent) => void): void {
    this.#onEvent = onEvent;
  }

  ask(verb: string, args: readonly unknown[]): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      if (!this.#child.send({ id, verb, args })) return reject(new Error(this.#child.howItEnded()));
      this.#pending.set(id, { resolve, reject });
    });
  }

  /** SIGSTOP. Resolves when the process stands still, a moment after the signal was sent. */
  async stop(): Promise<void> {
    if (!this.#child.signal("SIGSTOP")) throw new Error(this.#child.howItEnded());
    const giveUpAt = performance.now() + STOP_TIMEOUT_MS;
    while (stateOf(this.pid) !== "T") {
      if (performance.now() > giveUpAt)
        throw new Error(`a worker (process ${this.pid}) was sent SIGSTOP ${STOP_TIMEOUT_MS} ms ago and still runs`);
      await nextTurn();
    }
  }

  /** SIGCONT. */
  resume(): void {
    if (!this.#child.signal("SIGCONT")) throw new Error(this.#child.howItEnded());
  }

  async kill(): Promise<void> {
    await this.#child.kill();
  }

  #heard(report: Report): void {
    if ("event" in report) {
      this.#onEvent(report);
      return;
    }
    const pending = this.#pending.get(report.id);
    this.#pending.delete(report.id);
    if (!("failure" in report)) pending?.resolve(report.answer);
    else if (report.unexpected) pending?.reject(new UnexpectedOutcome(report.failure));
    else pending?.reject(new Error(`a worker failed: ${report.failure}`));
  }
}

/** Processes are started ahead of time, lent to one act after another, and all ended at the end. */
export class WorkerPool implements AsyncDisposable {
  readonly #all = new Set<WorkerProcess>();
  readonly #free: WorkerProcess[] = [];
  #ended = false;

  /** Starts workers until so many are free, so that they are ready when they are needed. */
  prepare(count: number): void {
    while (this.#free.length < count) this.#free.push(this.#start());
  }

  take(): WorkerProcess {
    return this.#free.shift() ?? this.#start();
  }

  /** A reusable worker waits for another act; a spent one is ended. */
  async giveBack(worker: WorkerProcess, state: "reusable" | "spent"): Promise<void> {
    if (state === "reusable" && worker.alive && !this.#ended) {
      await worker.ask("leaves", []);
      worker.listen(() => undefined);
      this.#free.push(worker);
      return;
    }
    this.#all.delete(worker);
    await worker.kill();
  }

  /** Ends every worker; requests under way are answered with an error. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all([...this.#all].map((worker) => worker.kill()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  #start(): WorkerProcess {
    const worker = new WorkerProcess();
    this.#all.add(worker);
    return worker;
  }
}

function stateOf(pid: number): string {
  if (process.platform !== "linux") return "T"; // Without /proc the signal is taken to have worked.
  const line = readFileSync(`/proc/${pid}/stat`, "latin1");
  return line.charAt(line.lastIndexOf(")") + 2); // "123 (a name) T …": the name may contain anything, even ") ".
}

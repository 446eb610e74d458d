// A worker as a scenario speaks to it: the verbs of the worker process, and what is done to the
// process from outside. The process may stand still, so the end of its lease is shown from here.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchFolder } from "@palisade/testkit";
import type { Step } from "../output/events.js";
import type { BeforeWriting, Document, Resource, WorkerConfig, WorkerEvent, WorkerStep, WriteResult } from "../worker/protocol.js";
import { Worker as WorkerVerbs } from "../worker/worker.js";
import type { WorkerPool, WorkerProcess } from "./environment.js";

type Verbs = Pick<WorkerVerbs, Exclude<keyof WorkerVerbs, "ready" | "leaves">>;

/** With each verb of the worker process as a method, typed from the class that does it. */
export type Worker = WorkerHandle & Verbs;

export interface StepDetails extends Pick<Step, "text">, Partial<Pick<Step, "to" | "token">> {
  /** By `monotonicMs`; now when absent. */
  readonly at?: number;
}

/** Where steps are shown. */
export interface Narrator {
  step(kind: Step["kind"], from: string, details: StepDetails): void;
  /** Gives the reader time. */
  pause(): Promise<void>;
}

/** A write that was begun and is not yet answered. */
interface PendingWrite {
  readonly answer: Promise<WriteResult>;
}

export async function joinAct(narrator: Narrator, process: WorkerProcess, config: WorkerConfig): Promise<Worker> {
  const handle = new WorkerHandle(narrator, process, config.name);
  const verbs = Object.getOwnPropertyNames(WorkerVerbs.prototype).filter((verb) => verb !== "constructor");
  const methods = verbs.map((verb) => [verb, (...args: readonly unknown[]) => handle.ask(verb, args)]);
  await process.ask({ verb: "joins", args: [config] });
  return Object.assign(handle, Object.fromEntries(methods)) as Worker;
}

class WorkerHandle {
  readonly name: string;
  readonly #narrator: Narrator;
  readonly #process: WorkerProcess;
  /** Whether it can hear a request: not while it is stopped or computes. */
  #listens = true;
  #leaseEnd: NodeJS.Timeout | undefined;
  #computation: string | undefined;
  #onAboutToWrite: () => void = () => undefined;

  constructor(narrator: Narrator, process: WorkerProcess, name: string) {
    this.#narrator = narrator;
    this.#process = process;
    this.name = name;
    process.onTold = (event) => this.#heard(event);
  }

  /** A call that is not awaited may fail unseen: its act has ended for another reason then. */
  ask(verb: string, args: readonly unknown[]): Promise<unknown> {
    const answer = this.#process.ask<unknown>({ verb, args }).then(async (value) => {
      await this.#narrator.pause();
      return value;
    });
    answer.catch(() => undefined);
    return answer;
  }

  /** Finds its lease good, and computes what it will write. Resolves when it begins to. */
  async isAboutToWrite(resource: Resource, document: Document, beforeWriting: BeforeWriting = "trusts"): Promise<PendingWrite> {
    this.#computation = scratchFolder("computation");
    this.#listens = false;
    const begun = new Promise<void>((resolve) => {
      this.#onAboutToWrite = resolve;
    });
    const doneWhen = join(this.#computation, "done");
    const answer = this.ask("computesAndWrites", [resource, document, { doneWhen, beforeWriting }]) as Promise<WriteResult>;
    await Promise.race([begun, answer]);
    await this.#narrator.pause();
    return { answer };
  }

  /** Its event loop is free again, and it goes on to write. */
  finishesComputing(): void {
    this.#narrator.step("resumes", this.name, { text: "has finished its computation" });
    this.#endComputation();
    this.#listens = true;
  }

  async isStopped(): Promise<void> {
    this.#listens = false;
    await this.#process.stop();
    this.#narrator.step("stops", this.name, { text: `SIGSTOP: process ${this.#process.pid} stands still` });
    await this.#narrator.pause();
  }

  wakesUp(): void {
    this.#narrator.step("resumes", this.name, { text: `SIGCONT: process ${this.#process.pid} goes on where it was` });
    this.#endComputation();
    this.#process.resume();
    this.#listens = true;
  }

  async leavesAct(pool: WorkerPool, state: "reusable" | "spent"): Promise<void> {
    clearTimeout(this.#leaseEnd);
    await pool.giveBack(this.#process, this.#listens ? state : "spent");
    if (this.#computation !== undefined) rmSync(this.#computation, { recursive: true, force: true });
  }

  #endComputation(): void {
    if (this.#computation !== undefined) writeFileSync(join(this.#computation, "done"), "");
  }

  #heard(event: WorkerEvent): void {
    if (event.event === "about_to_write") this.#onAboutToWrite();
    else if (event.step.kind === "over") this.#showLeaseEnd(event.step.text);
    else this.#show(event.step);
  }

  #show({ kind, from, leaseMs, ...details }: WorkerStep): void {
    this.#narrator.step(kind, from, details);
    if (leaseMs === undefined) return;
    clearTimeout(this.#leaseEnd);
    this.#leaseEnd = setTimeout(() => this.#showLeaseEnd(`the lease of ${this.name} is over`), leaseMs);
  }

  /** Once for each lease. */
  #showLeaseEnd(text: string): void {
    if (this.#leaseEnd === undefined) return;
    clearTimeout(this.#leaseEnd);
    this.#leaseEnd = undefined;
    this.#narrator.step("over", this.name, { text });
  }
}

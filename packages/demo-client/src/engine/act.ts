// One act of a scenario while it runs: its clock, its steps, its claims, and its workers as a scenario
// speaks to them. The first claim that does not come true ends it.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Closers, scratchFolder } from "@palisade/testkit";
import { type Show, type Step, serverLanes } from "../output/events.js";
import {
  type BeforeWriting,
  type Document,
  monotonicMs,
  type Resource,
  type Route,
  UnexpectedOutcome,
  type WorkerConfig,
  type WorkerEvent,
  type WorkerStep,
  type WriteResult,
} from "../worker/protocol.js";
import { StoreClient } from "../worker/store-client.js";
import { Worker as WorkerVerbs } from "../worker/worker.js";
import type { Environment, WorkerPool, WorkerProcess } from "./environment.js";

interface RunOptions {
  readonly environment: Environment;
  readonly show: Show;
  readonly ttlMs: number;
  /** How long to let the reader read after each step; 0 for not at all. */
  readonly pauseMs: number;
  /** Makes the names of resources unique to this run. */
  readonly run: string;
  /** Aborted when the user wants the program to end. */
  readonly signal?: AbortSignal;
}

export interface Scenario {
  readonly name: string;
  /** One line for the list. */
  readonly about: string;
  /** At least one is a control, which leaves out a measure and shows the damage. */
  readonly acts: readonly Act[];
  /** What is said before the first act, and again as proven when every claim came true. */
  readonly proven: string;
}

export interface Act {
  readonly title: string;
  /** The lanes from left to right; others that a step names are added at the right. */
  readonly actors: readonly string[];
  /** How the workers of this act reach the store. */
  readonly route: Route;
  readonly play: (act: ActRun) => Promise<void>;
}

/** For workers that differ: another way to a server, other servers. */
export type Differing = Partial<Omit<WorkerConfig, "name">>;

export class ActRun extends Closers {
  readonly ttlMs: number;
  readonly route: Route;
  readonly environment: Environment;
  readonly #options: RunOptions;
  readonly #scenario: Scenario;
  readonly #act: Act;
  readonly #leave: (() => Promise<void>)[] = [];
  #startedAt: number | undefined;
  #lastAtMs = 0;

  constructor(options: RunOptions, scenario: Scenario, act: Act) {
    super();
    this.#options = options;
    this.#scenario = scenario;
    this.#act = act;
    this.ttlMs = options.ttlMs;
    this.route = act.route;
    this.environment = options.environment;
    this.environment.workers.prepare(act.actors.filter((actor) => !serverLanes.includes(actor)).length);
    options.show({ event: "act", ...this.#where, actors: act.actors });
  }

  /** Worker processes that reach every server directly. */
  async workers<const Names extends readonly string[]>(...names: Names): Promise<{ readonly [Name in keyof Names]: Worker }> {
    const workers = await Promise.all(names.map((name) => this.worker(name)));
    return workers as unknown as { readonly [Name in keyof Names]: Worker };
  }

  async worker(name: string, differing: Differing = {}): Promise<Worker> {
    const pool = this.environment.workers;
    const process = pool.take();
    // A worker with broken servers may not be able to close its connections: it is not used again.
    const state = Object.keys(differing).length === 0 ? "reusable" : "spent";
    const joining = joinAct(this, process, { name, ...this.#config, ...differing });
    this.#leave.push(async () => {
      const worker = await joining.catch(() => undefined);
      await (worker === undefined ? pool.giveBack(process, "spent") : worker.leavesAct(pool, state));
    });
    return await joining;
  }

  resource(shown: string): Resource {
    const { name, acts } = this.#scenario;
    return { shown, name: `${this.#options.run}/${name}/${acts.indexOf(this.#act) + 1}/${shown}` };
  }

  step(kind: Step["kind"], from: string, { at, ...details }: StepDetails): void {
    this.#options.show({ event: "step", ...this.#where, atMs: this.#atMs(at), kind, from, ...details });
  }

  /** Gives the reader time. */
  async pause(): Promise<void> {
    if (this.#options.pauseMs > 0) await this.passes(this.#options.pauseMs);
  }

  /** Lets time pass. */
  async passes(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#options.signal });
  }

  /** What is stored in the end, as any reader sees it. */
  async stored(resource: Resource, differing: Differing = {}): Promise<Document | null> {
    const store = new StoreClient({ ...this.#config, ...differing });
    try {
      const read = await store.read(resource.name);
      if (!read.ok) throw new UnexpectedOutcome(`${resource.shown} could not be read: ${read.code}, ${read.message}`);
      this.step("remarks", "store", { text: `${resource.shown} is ${JSON.stringify(read.document)}` });
      return read.document;
    } finally {
      await store.close();
    }
  }

  /** A claim of the scenario; the act ends here if it does not come true. */
  expect(claim: string, seen: unknown, wanted: unknown = true): void {
    this.#judge({ claim }, seen, wanted);
  }

  /** A claim of a control: the damage that the left-out measure would have prevented. */
  expectDamage(claim: string, seen: unknown, wanted: unknown = true): void {
    this.#judge({ claim, damage: true }, seen, wanted);
  }

  #judge(check: { readonly claim: string; readonly damage?: true }, seen: unknown, wanted: unknown): void {
    const { claim } = check;
    const ok = isDeepStrictEqual(seen, wanted);
    const saw = ok ? {} : { saw: JSON.stringify(seen) };
    this.#options.show({ event: "check", ...this.#where, atMs: this.#atMs(), ok, ...check, ...saw });
    if (!ok) throw new UnexpectedOutcome(`${this.#act.title}: it is not true that ${claim}; seen: ${JSON.stringify(seen)}`);
  }

  /** Workers leave before what was opened for the act is closed. */
  override async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#leave.map((leave) => leave()));
    await super[Symbol.asyncDispose]();
  }

  get #where(): { readonly scenario: string; readonly act: string } {
    return { scenario: this.#scenario.name, act: this.#act.title };
  }

  /** Since the first step; a worker's step that arrives late does not go back in time. */
  #atMs(at = monotonicMs()): number {
    this.#startedAt ??= at;
    this.#lastAtMs = Math.max(this.#lastAtMs, at - this.#startedAt);
    return this.#lastAtMs;
  }

  get #config(): Omit<WorkerConfig, "name"> {
    const { redisUrls, gatewayUrl, databaseUrl } = this.environment;
    const { ttlMs, route } = this;
    // Long, except where a scenario is about silent nodes: a slow machine must not look like one.
    const nodeTimeoutMs = 5_000;
    return { redisUrls, ttlMs, nodeTimeoutMs, route, gatewayUrl, databaseUrl };
  }
}

// Runs the acts of a scenario in turn. It is proven when every claim of every act came true.
export async function runScenario(scenario: Scenario, options: RunOptions): Promise<"proven" | "differs"> {
  const startedAt = performance.now();
  const { name, about, acts, proven } = scenario;
  const { show, ttlMs } = options;
  show({ event: "scenario", scenario: name, about, claim: proven, ttlMs });
  const end = (ok: boolean, text: string): void =>
    show({ event: "end", scenario: name, ok, elapsedMs: performance.now() - startedAt, proven: text });
  try {
    for (const act of acts) {
      await using run = new ActRun(options, scenario, act);
      await act.play(run);
    }
  } catch (error) {
    // After Ctrl-C it ends without a verdict.
    if (options.signal?.aborted !== true) end(false, reasonOf(error));
    return "differs";
  }
  end(true, proven);
  return "proven";
}

/** Tells a claim that did not come true from a server or a compiler that is missing. */
function reasonOf(thrown: unknown): string {
  let error = thrown;
  // The first failure, not those while the act was cleaned up after it.
  while (error instanceof Error && "suppressed" in error) error = error.suppressed;
  const message = error instanceof Error ? error.message : String(error);
  return `The scenario ${error instanceof Error && error.name === "UnexpectedOutcome" ? "ended differently" : "could not be run"}. ${message}`;
}

// A worker as a scenario speaks to it: the verbs of the worker process, and what is done to the
// process from outside. The process may stand still, so the end of its lease is shown from here.

type Verbs = Pick<WorkerVerbs, Exclude<keyof WorkerVerbs, "ready" | "leaves">>;

/** With each verb of the worker process as a method, typed from the class that does it. */
export type Worker = WorkerHandle & Verbs;

export interface StepDetails extends Pick<Step, "text">, Partial<Pick<Step, "to" | "token">> {
  /** By `monotonicMs`; now when absent. */
  readonly at?: number;
}

async function joinAct(act: ActRun, process: WorkerProcess, config: WorkerConfig): Promise<Worker> {
  const handle = new WorkerHandle(act, process, config.name);
  const verbs = Object.getOwnPropertyNames(WorkerVerbs.prototype).filter((verb) => verb !== "constructor");
  const methods = verbs.map((verb) => [verb, (...args: readonly unknown[]) => handle.ask(verb, args)]);
  await process.ask({ verb: "joins", args: [config] });
  return Object.assign(handle, Object.fromEntries(methods)) as Worker;
}

class WorkerHandle {
  readonly name: string;
  readonly #act: ActRun;
  readonly #process: WorkerProcess;
  /** Whether it can hear a request: not while it is stopped or computes. */
  #listens = true;
  #leaseEnd: NodeJS.Timeout | undefined;
  #computation: string | undefined;
  #onAboutToWrite: () => void = () => undefined;

  constructor(act: ActRun, process: WorkerProcess, name: string) {
    this.#act = act;
    this.#process = process;
    this.name = name;
    process.onTold = (event) => this.#heard(event);
  }

  /** A call that is not awaited may fail unseen: its act has ended for another reason then. */
  ask(verb: string, args: readonly unknown[]): Promise<unknown> {
    const answer = this.#process.ask<unknown>({ verb, args }).then(async (value) => {
      await this.#act.pause();
      return value;
    });
    answer.catch(() => undefined);
    return answer;
  }

  /** Finds its lease good, and computes what it will write. Resolves when it begins to, with the answer to come. */
  async isAboutToWrite(
    resource: Resource,
    document: Document,
    beforeWriting: BeforeWriting = "trusts",
  ): Promise<{ readonly answer: Promise<WriteResult> }> {
    this.#computation = scratchFolder("computation");
    this.#listens = false;
    const begun = new Promise<void>((resolve) => {
      this.#onAboutToWrite = resolve;
    });
    const doneWhen = join(this.#computation, "done");
    const answer = this.ask("computesAndWrites", [resource, document, { doneWhen, beforeWriting }]) as Promise<WriteResult>;
    await Promise.race([begun, answer]);
    await this.#act.pause();
    return { answer };
  }

  /** Its event loop is free again, and it goes on to write. */
  finishesComputing(): void {
    this.#act.step("resumes", this.name, { text: "has finished its computation" });
    this.#endComputation();
    this.#listens = true;
  }

  async isStopped(): Promise<void> {
    this.#listens = false;
    await this.#process.stop();
    this.#act.step("stops", this.name, { text: `SIGSTOP: process ${this.#process.pid} stands still` });
    await this.#act.pause();
  }

  wakesUp(): void {
    this.#act.step("resumes", this.name, { text: `SIGCONT: process ${this.#process.pid} goes on where it was` });
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
    this.#act.step(kind, from, details);
    if (leaseMs === undefined) return;
    clearTimeout(this.#leaseEnd);
    this.#leaseEnd = setTimeout(() => this.#showLeaseEnd(`the lease of ${this.name} is over`), leaseMs);
  }

  /** Once for each lease. */
  #showLeaseEnd(text: string): void {
    if (this.#leaseEnd === undefined) return;
    clearTimeout(this.#leaseEnd);
    this.#leaseEnd = undefined;
    this.#act.step("over", this.name, { text });
  }
}

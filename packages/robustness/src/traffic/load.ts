// Traffic of the soak: so many operations per second, drawn by chance, from several actors at once.
// Refusals are counted by their code; any other error ends the process.
import { openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError } from "@palisade/client";
import { LockError } from "@palisade/lock";
import { gatewayLoad, lockLoad } from "./load-operations.js";
import { LoadTools } from "./load-tools.js";
import { type FromWorker, type Leak, type LoadOrders, type Reading, type Traffic, timings } from "./messages.js";
import { readSelf, startProbe } from "./probe.js";
import { firstContact } from "./recorded-lock.js";

const ACTORS = 12;
/** The longest operation is a write, tried five times against a gateway that is silent. */
const FINISH_MS = 40_000;
const catalogue = Object.entries({ ...lockLoad, ...gatewayLoad });

export class Load implements Traffic {
  readonly #orders: LoadOrders;
  readonly #tools: LoadTools;
  readonly #leaking: readonly (() => void)[];
  readonly #underWay = new Set<{ readonly name: string; readonly at: string }>();
  #isFinishing = false;
  #operations: Record<string, number> = {};
  #failures: Record<string, number> = {};

  constructor(orders: LoadOrders) {
    startProbe();
    this.#orders = orders;
    this.#tools = new LoadTools(orders);
    this.#leaking = orders.leaks.map((leak) => leakOf(leak, this.#tools));
  }

  ready(): Promise<void> {
    return firstContact(this.#tools.locker);
  }

  async work(): Promise<void> {
    await Promise.all(Array.from({ length: ACTORS }, () => this.#act()));
  }

  /** An operation that does not end is named, and fails the process. */
  finish(): void {
    this.#isFinishing = true;
    setTimeout(() => {
      const unfinished = [...this.#underWay].map(({ name, at }) => `${name} (since ${at})`);
      if (unfinished.length === 0) return;
      console.error(`not finished within ${FINISH_MS} ms: ${unfinished.join(", ")}`);
      process.exit(1);
    }, FINISH_MS).unref();
  }

  report(): FromWorker {
    const latencies = Object.fromEntries(timings.map((name) => [name, this.#tools.latencies[name].take()]));
    const [operations, failures] = [this.#operations, this.#failures];
    [this.#operations, this.#failures] = [{}, {}];
    const { waiting } = this.#tools;
    return { kind: "reading", reading: { self: readSelf(), waiting, operations, failures, latencies: latencies as Reading["latencies"] } };
  }

  async close(): Promise<void> {
    await this.#tools.locker.close();
  }

  /** Each actor at its own times; one that is late does not catch up. */
  async #act(): Promise<void> {
    const gapMs = (1_000 * ACTORS) / this.#orders.perSecond;
    let nextAt = performance.now();
    while (!this.#isFinishing) {
      nextAt = Math.max(performance.now(), nextAt - gapMs * Math.log(1 - this.#tools.chance.next()));
      await sleep(nextAt - performance.now());
      if (!this.#isFinishing) await this.#operate();
    }
  }

  async #operate(): Promise<void> {
    const { chance } = this.#tools;
    const [name, [, perform]] = chance.weighted(catalogue, ([, [weight]]) => weight);
    const operation = { name, at: new Date().toISOString() };
    this.#underWay.add(operation);
    let code: unknown;
    try {
      code = await perform(this.#tools);
    } catch (error) {
      if (!(error instanceof LockError || error instanceof GatewayError)) throw error;
      code = error.code;
    }
    this.#underWay.delete(operation);
    this.#operations[name] = (this.#operations[name] ?? 0) + 1;
    if (typeof code === "string") this.#failures[code] = (this.#failures[code] ?? 0) + 1;
    for (const leak of this.#leaking) leak();
  }
}

/** The size of a body that is kept. */
const BYTES = 32_768;
/** One open file for every other operation, below the machine's limit. */
const OPERATIONS_PER_FILE = 2;
const MOST_FILES = 5_000;

/** What to do after every operation. */
function leakOf(leak: Leak, tools: LoadTools): () => void {
  switch (leak) {
    case "memory": {
      const kept: Buffer[] = [];
      return () => kept.push(Buffer.alloc(BYTES, 1));
    }
    case "timers":
      return () => setInterval(() => {}, 3_600_000);
    case "listeners":
      return () => tools.shutdown.signal.addEventListener("abort", () => tools.waiting);
    case "files": {
      let operations = 0;
      return () => {
        operations++;
        if (operations % OPERATIONS_PER_FILE === 0 && operations < OPERATIONS_PER_FILE * MOST_FILES) openSync(process.execPath, "r");
      };
    }
  }
}

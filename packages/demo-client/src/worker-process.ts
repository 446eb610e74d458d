// One worker process from the outside: asks, hears answers and signs, stops it and lets it go on. Must not know what a story is.
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";
import { pause, resume } from "./pause.js";
import type { Report, Verb, Verbs } from "./worker-protocol.js";

/** Always the compiled one, also when this file is run from its source. */
const program = fileURLToPath(new URL("../dist/worker.js", import.meta.url));

export type Sign = Extract<Report, { readonly sign: string }>;

interface Waiting {
  readonly resolve: (answer: never) => void;
  readonly reject: (reason: Error) => void;
}

export class WorkerProcess {
  readonly #child: Child;
  readonly #waiting = new Map<number, Waiting>();
  #asked = 0;
  #onSign: (sign: Sign) => void = () => undefined;

  constructor() {
    this.#child = startChild({
      command: process.execPath,
      args: [program],
      name: "worker",
      onMessage: (message) => this.#heard(message as Report),
    });
    // Whoever waits for an answer is told; without anybody waiting, the end of a worker is nobody's concern.
    void this.#child.waitForExit().then(() => {
      for (const { reject } of this.#waiting.values()) reject(new Error(this.#child.obituary()));
      this.#waiting.clear();
    });
  }

  get pid(): number {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#child.alive;
  }

  /** What the worker says without being asked goes to one listener. */
  listen(onSign: (sign: Sign) => void): void {
    this.#onSign = onSign;
  }

  ask<V extends Verb>(verb: V, args: Verbs[V]["with"]): Promise<Verbs[V]["answer"]> {
    this.#asked += 1;
    const id = this.#asked;
    return new Promise<Verbs[V]["answer"]>((resolve, reject) => {
      if (!this.#child.send({ id, verb, with: args })) return reject(new Error(this.#child.obituary()));
      this.#waiting.set(id, { resolve, reject });
    });
  }

  pause(): Promise<void> {
    return pause(this.#child);
  }

  resume(): void {
    resume(this.#child);
  }

  async kill(): Promise<void> {
    await this.#child.kill();
  }

  #heard(report: Report): void {
    if ("sign" in report) {
      this.#onSign(report);
      return;
    }
    const waiting = this.#waiting.get(report.id);
    this.#waiting.delete(report.id);
    if ("failure" in report) waiting?.reject(new Error(`a worker failed: ${report.failure}`));
    else waiting?.resolve(report.answer as never);
  }
}

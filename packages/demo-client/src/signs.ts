// What a worker says without being asked, for those parts of a story that wait for it. Decides that nobody waits for ever.
import { StoryDiffers } from "./story-differs.js";
import type { Sign } from "./worker-process.js";

export class Signs {
  readonly #worker: string;
  readonly #patienceMs: number;
  readonly #listeners = new Set<(sign: Sign) => void>();

  constructor(worker: string, patienceMs: number) {
    this.#worker = worker;
    this.#patienceMs = patienceMs;
  }

  tell(sign: Sign): void {
    for (const listener of this.#listeners) listener(sign);
  }

  watch(listener: (sign: Sign) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The value, as soon as a sign fulfils the condition. */
  hear<T>(condition: (sign: Sign) => boolean, value: T): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = this.watch((sign) => {
        if (!condition(sign)) return;
        stop();
        clearTimeout(impatience);
        resolve(value);
      });
      const impatience = setTimeout(() => {
        stop();
        reject(new StoryDiffers(`${this.#worker} did not say within ${this.#patienceMs} ms what the story waits for`));
      }, this.#patienceMs);
      impatience.unref();
    });
  }
}

// Which files of the product run code during one operation, and in which order, by V8's precise
// coverage of this process. Loading a module does not count.
import { readFileSync } from "node:fs";
import { Session } from "node:inspector";

/**
 * @template T
 * @typedef {object} Traced what runs in `prepare` does not count
 * @property {number} repetitions
 * @property {() => Promise<T>} prepare
 * @property {(prepared: T) => Promise<unknown>} operation
 */

/**
 * What ran in every repetition, in the order of the first calls, and what ran in some of them only:
 * a timer of something else, or what depends on the moment.
 * @typedef {{ readonly always: readonly string[], readonly sometimes: readonly string[] }} Files
 */

/** @typedef {{ readonly file: string, readonly scriptId: string, readonly url: string, readonly start: number, readonly end: number }} Call */

const COMPILED = /^packages\/(lock|guard|gateway)\/dist\/(.+)\.js$/;

/** On a busy machine the gateway has not heard the nodes in time (503): that was another path. */
export class NoAnswer extends Error {}
const ATTEMPTS = 5;

export class Coverage {
  #session = new Session();
  #root;

  /** @param {URL} root of the built workspace to watch */
  constructor(root) {
    this.#root = root.href;
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  /**
   * The files that the operation runs, as "lock/lease/acquire.ts".
   * @template T @param {Traced<T>} traced @returns {Promise<Files>}
   */
  async filesRunBy({ repetitions, prepare, operation }) {
    /** @type {Map<string, Call>} */
    const calls = new Map();
    /** @type {Set<string>[]} */
    const runs = [];
    for (let repetition = 0; repetition < repetitions; repetition++) {
      const taken = await heard(async () => {
        const prepared = await prepare();
        this.#take();
        await operation(prepared);
        return this.#take();
      });
      for (const call of taken) calls.set(`${call.file}:${call.start}`, call);
      runs.push(new Set(taken.map(({ file }) => file)));
    }
    const ordered = await heard(async () => {
      const prepared = await prepare();
      return await this.#inOrder([...calls.values()], () => operation(prepared));
    });
    const files = [...new Set([...ordered, ...runs.flatMap((run) => [...run])])];
    const always = files.filter((file) => runs.every((run) => run.has(file)));
    return { always, sometimes: files.filter((file) => !always.includes(file)) };
  }

  stop() {
    this.#session.disconnect();
  }

  /** The functions that were called since the last look. @returns {readonly Call[]} */
  #take() {
    /** @type {Call[]} */
    const calls = [];
    this.#session.post("Profiler.takePreciseCoverage", (error, taken) => {
      if (error !== null) throw error;
      for (const { url, scriptId, functions } of taken.result) {
        const [, name, path] = (url.startsWith(this.#root) && COMPILED.exec(url.slice(this.#root.length))) || [];
        if (name === undefined) continue;
        for (const { ranges } of functions) {
          const [{ startOffset: start, endOffset: end, count } = { startOffset: 0, endOffset: 0, count: 0 }] = ranges;
          // The module itself begins at 0.
          if (start > 0 && count > 0) calls.push({ file: `${name}/${path}.ts`, scriptId, url, start, end });
        }
      }
    });
    return calls;
  }

  /**
   * Runs it once more, with a breakpoint in each function that notes the file and does not stop.
   * @param {readonly Call[]} calls @param {() => Promise<unknown>} run
   */
  async #inOrder(calls, run) {
    /** @type {string[]} */
    const seen = [];
    Object.assign(globalThis, { palisadePathRuns: (/** @type {string} */ file) => void (seen.includes(file) || seen.push(file)) });
    this.#session.post("Debugger.enable");
    for (const call of calls) this.#noteAt(call);
    await run().finally(() => this.#session.post("Debugger.disable"));
    return seen;
  }

  /** @param {Call} call */
  #noteAt({ file, scriptId, url, start, end }) {
    const text = readFileSync(new URL(url), "utf8");
    const place = (/** @type {number} */ offset) => {
      const lines = text.slice(0, offset).split("\n");
      return { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 };
    };
    const within = { start: place(start), end: place(end), restrictToFunction: true };
    this.#session.post("Debugger.getPossibleBreakpoints", within, (_, found) => {
      const location = found?.locations[0];
      const condition = `palisadePathRuns(${JSON.stringify(file)})`;
      if (location !== undefined) this.#session.post("Debugger.setBreakpoint", { location, condition });
    });
  }
}

/** @template T @param {() => Promise<T>} attempt @returns {Promise<T>} */
export async function heard(attempt) {
  for (let left = ATTEMPTS - 1; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof NoAnswer) || left === 0) throw error;
    }
  }
}

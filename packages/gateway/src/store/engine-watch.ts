// Which engine this gateway writes to, from the first look on. What a statement may be and which
// writes go together rest on it, so a database that becomes another one meanwhile is not written
// through. The shards' places are looked at again now and then: they move.
import type { Unavailable } from "../fence/verdict.js";
import { type Engine, EngineError, type EngineQuery, engineOf } from "./engine.js";
import { type ReadPool, rowsOf } from "./read-pool.js";

const LOOK_EVERY_MS = 5_000;

export class EngineWatch {
  /** Undefined before the first look that was answered. */
  known: Engine | undefined;
  readonly #pool: ReadPool;
  readonly #onFound: (engine: Engine) => void;
  #looking: Promise<Unavailable | undefined> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: ReadPool, onFound: (engine: Engine) => void) {
    this.#pool = pool;
    this.#onFound = onFound;
  }

  /** Why nothing can be written; undefined when the engine is known. One look at a time. */
  look(): Promise<Unavailable | undefined> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** What a session without the extension tells, unless the tables were distributed before. */
  plain(): void {
    this.known ??= { kind: "plain" };
  }

  /** For a session that was just opened: why it must not be written through. */
  async fault(query: EngineQuery): Promise<string | undefined> {
    try {
      const found = await engineOf(query);
      if (this.known !== undefined && this.known.kind !== found.kind)
        return `its tables were on ${this.known.kind === "citus" ? "Citus" : "plain Postgres"} when this gateway looked first, and are on ${found.kind === "citus" ? "Citus" : "plain Postgres"} now: start the gateway anew`;
      this.known = found;
      this.#onFound(found);
      if (found.kind === "citus") this.#timer ??= setInterval(() => void this.look(), LOOK_EVERY_MS).unref();
      return undefined;
    } catch (error) {
      if (error instanceof EngineError) return error.message;
      throw error;
    }
  }

  async #look(): Promise<Unavailable | undefined> {
    const found = await this.#pool.read(async (db) => ({ fault: await this.fault((text) => rowsOf(db, text)) }));
    if ("kind" in found) return found;
    if (found.fault === undefined) return undefined;
    return { kind: "unavailable", reason: "refused", outcome: "not_applied", cause: new Error(found.fault) };
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

// The ways from a request to the database: a queue, a line, and the connections of each. Plain
// Postgres has one. With Citus each worker has its own, so that one that does not answer takes no
// connection and no turn from the writes of the others; what concerns several workers, or none,
// goes through one more.

import type { StoreLimits } from "../limits.js";
import type { Engine, Shards } from "../store/engine.js";
import { HeldRows, Line, WriteSlots } from "../store/slots.js";
import type { WriteConnectionOptions } from "../store/write-connection.js";
import { CitusWrites } from "./citus-writes.js";
import { type BatchEvent, GroupCommit } from "./group-commit.js";
import { type FencedWrites, PlainWrites, type WritesForm } from "./plain-writes.js";
import { Transactions } from "./transaction.js";

interface WritePathParts {
  readonly limits: StoreLimits;
  readonly connection: Omit<WriteConnectionOptions, "onReply">;
  readonly form: WritesForm;
  readonly observe: (event: BatchEvent) => void;
}

interface WritePath {
  readonly slots: readonly WriteSlots[];
  readonly line: Line;
  readonly commit: GroupCommit;
  readonly transactions: Transactions;
}

/**
 * Of each worker, for single writes. There a write is a transaction of several messages, where plain
 * Postgres gets a statement for many: so more of them are under way.
 */
const WRITES_PER_WORKER = 8;

export class WritePaths {
  /** As the engine wants them; of plain Postgres before it is known. */
  readonly writes: { current: FencedWrites };
  /** Where tables have them. */
  shards: Shards | undefined;
  /** For what concerns no worker, or several; for all where there are no workers. */
  readonly whole: WritePath;
  readonly #parts: WritePathParts;
  readonly #ofWorkers = new Map<number, WritePath>();
  #isClosing = false;
  #areRehearsed = false;

  constructor(parts: WritePathParts) {
    this.#parts = parts;
    this.writes = { current: new PlainWrites(parts.form) };
    this.whole = this.#open();
  }

  /** What the database says, at first and whenever it is looked at again. */
  use(engine: Engine): void {
    if (engine.kind === "plain") return;
    if (this.shards === undefined) this.writes.current = new CitusWrites(this.#parts.form);
    this.shards = engine.shards;
  }

  /** That of one worker, if it has them all. */
  pathOf(resources: readonly string[]): WritePath {
    const { shards } = this;
    if (shards === undefined) return this.whole;
    const [worker, ...others] = new Set(resources.map((resource) => shards.shardOf(resource).worker));
    return worker === undefined || others.length > 0 ? this.whole : this.#of(worker);
  }

  get all(): readonly WritePath[] {
    return [this.whole, ...this.#ofWorkers.values()];
  }

  /** Resolves when all accepted work was answered. */
  async drain(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.all.flatMap(({ commit, line }) => [commit.drain(), line.drain()]));
  }

  /** Answers what waits and cuts what runs. */
  abandon(): void {
    for (const { commit, line, slots } of this.all) {
      commit.abandonQueue();
      line.abandon();
      for (const some of slots) some.destroy();
    }
  }

  async end(timeoutMs: number): Promise<void> {
    await Promise.all(this.all.flatMap(({ slots }) => slots.map((some) => some.end(timeoutMs))));
  }

  /**
   * Runs every form of the statement once without an effect: whether this engine can run them is known
   * before the first write. Undefined when each has run; otherwise why one did not.
   */
  async statementFault(): Promise<string | undefined> {
    if (this.#areRehearsed) return undefined;
    const outcome = await this.whole.line.use([], async (connection) => ({
      kind: "rehearsed" as const,
      fault: await this.writes.current.rehearse(connection),
    }));
    if (outcome.kind === "unavailable") return `no connection was free (${outcome.reason})`;
    if (outcome.kind === "held") return "a row was held";
    this.#areRehearsed = outcome.fault === undefined;
    return outcome.fault;
  }

  /** Counts a beat in the database (store/restore-check.ts); undefined where it could not, or the database has lost some. */
  async beat(atLeast: number): Promise<number | undefined> {
    const statement = { name: "palisade-beat", text: "select palisade.beat($1)", values: [String(atLeast)] };
    const done = await this.whole.line.use([], async (connection) => ({ kind: "done" as const, reply: await connection.run(statement) }));
    const [beat] = (done.kind === "done" && "rows" in done.reply ? done.reply.rows[0] : undefined) ?? [];
    return typeof beat === "number" ? beat : undefined;
  }

  #of(worker: number): WritePath {
    const known = this.#ofWorkers.get(worker);
    if (known !== undefined) return known;
    const path = this.#open();
    this.#ofWorkers.set(worker, path);
    if (this.#isClosing) void Promise.all([path.commit.drain(), path.line.drain()]); // Refuses all work from now on.
    return path;
  }

  #open(): WritePath {
    const { limits, connection, observe } = this.#parts;
    const { statementsInFlight, maxQueuedWrites, maxWaitMs } = limits;
    const isPlain = this.shards === undefined;
    const batchSlots = new WriteSlots(isPlain ? statementsInFlight : WRITES_PER_WORKER, connection);
    const lineSlots = new WriteSlots(statementsInFlight, connection);
    const heldRows = new HeldRows();
    const waitLimits = { maxAccepted: maxQueuedWrites, maxAcceptedBytes: Number.POSITIVE_INFINITY, maxWaitMs };
    const line = new Line({ slots: lineSlots, heldRows, limits: waitLimits });
    const common = { writes: this.writes, observe };
    const commit = new GroupCommit({ ...common, heldRows, slots: batchSlots, limits: isPlain ? limits : { ...limits, maxBatchRows: 1 } });
    return { slots: [batchSlots, lineSlots], line, commit, transactions: new Transactions({ ...common, line }) };
  }
}

// The ways from a request to the database: a queue, connections, and lines for slow rows. Plain
// Postgres has one. With Citus each worker has its own, so that one that does not answer takes no
// connection and no turn from the writes of the others; what concerns several workers, or none,
// goes through one more.
import type { Engine } from "../store/engine.js";
import { Lanes } from "../store/lanes.js";
import type { Shard, Shards } from "../store/shards.js";
import type { StoreLimits } from "../store/store-limits.js";
import type { WriteConnectionOptions } from "../store/write-connection.js";
import { SlotLine, SlowRows, WriteSlots } from "../store/write-slots.js";
import { CitusWrites } from "./citus-writes.js";
import type { StatementForm } from "./fenced-statement.js";
import type { FencedWrites } from "./fenced-writes.js";
import { type BatchEvent, GroupCommit } from "./group-commit.js";
import { PlainWrites } from "./plain-writes.js";
import { Transactions } from "./transaction.js";

interface WritePathParts {
  readonly limits: StoreLimits;
  readonly connection: Omit<WriteConnectionOptions, "onReply">;
  readonly form: Pick<StatementForm, "history" | "durability" | "documentLimitBytes">;
  readonly observe: (event: BatchEvent) => void;
}

interface WritePath {
  readonly slots: readonly WriteSlots[];
  readonly lanes: Lanes;
  readonly commit: GroupCommit;
  readonly transactions: Transactions;
}

/** Of a shard where there are shards, and what its writes go by. */
export interface Place {
  readonly shard: number;
  readonly path: WritePath;
}

export class WritePaths {
  /** As the engine wants them; of plain Postgres before it is known. */
  readonly writes: { current: FencedWrites };
  /** Where tables have them. */
  shards: Shards | undefined;
  /** For what concerns no worker, or several; for all where there are no workers. */
  readonly whole: Place;
  readonly #parts: WritePathParts;
  readonly #ofWorkers = new Map<number, WritePath>();
  #isClosing = false;

  constructor(parts: WritePathParts) {
    this.#parts = parts;
    this.writes = { current: new PlainWrites(parts.form) };
    this.whole = { shard: 0, path: this.#open() };
  }

  /** What the database says, at first and whenever it is looked at again. */
  use(engine: Engine): void {
    if (engine.kind === "plain") return;
    if (this.shards === undefined) this.writes.current = new CitusWrites(this.#parts.form, (name) => this.#shardOf(name).id);
    this.shards = engine.shards;
  }

  placeOf(resource: string): Place {
    const { id, worker } = this.#shardOf(resource);
    return { shard: id, path: this.#of(worker) };
  }

  /** That of one worker, if it has them all. */
  pathOf(resources: readonly string[]): WritePath {
    if (this.shards === undefined) return this.whole.path;
    const [worker, ...others] = new Set(resources.map((resource) => this.#shardOf(resource).worker));
    return worker === undefined || others.length > 0 ? this.whole.path : this.#of(worker);
  }

  #shardOf(resource: string): Shard {
    if (this.shards === undefined) throw new Error("invariant: only tables of Citus have shards");
    return this.shards.shardOf(resource);
  }

  get all(): readonly WritePath[] {
    return [this.whole.path, ...this.#ofWorkers.values()];
  }

  /** Resolves when all accepted work was answered. */
  async drain(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.all.flatMap(({ commit, lanes }) => [commit.drain(), lanes.drain()]));
  }

  /** Answers what waits and cuts what runs. */
  abandon(): void {
    for (const { commit, lanes, slots } of this.all) {
      commit.abandonQueue();
      lanes.abandon();
      for (const some of slots) some.destroy();
    }
  }

  async end(timeoutMs: number): Promise<void> {
    await Promise.all(this.all.flatMap(({ slots }) => slots.map((some) => some.end(timeoutMs))));
  }

  #of(worker: number): WritePath {
    const known = this.#ofWorkers.get(worker);
    if (known !== undefined) return known;
    const path = this.#open();
    this.#ofWorkers.set(worker, path);
    if (this.#isClosing) void Promise.all([path.commit.drain(), path.lanes.drain()]); // Refuses all work from now on.
    return path;
  }

  #open(): WritePath {
    const { limits, connection, form, observe } = this.#parts;
    const { statementsInFlight, maxQueuedWrites, maxWaitMs, lockWaitMs, batchLockWaitMs } = limits;
    const { durability, documentLimitBytes } = form;
    const slotsThatWait = (waitMs: number) => new WriteSlots(statementsInFlight, { ...connection, lockWaitMs: waitMs });
    const [batchSlots, transactionSlots, slowSlots] = [
      slotsThatWait(batchLockWaitMs),
      slotsThatWait(batchLockWaitMs),
      slotsThatWait(lockWaitMs),
    ];
    const slow = new SlotLine(slowSlots);
    const slowRows = new SlowRows();
    const waitLimits = { maxAccepted: maxQueuedWrites, maxAcceptedBytes: Number.POSITIVE_INFINITY, maxWaitMs };
    const lanes = new Lanes({ fast: new SlotLine(transactionSlots), slow, slowRows, limits: waitLimits });
    const common = { writes: this.writes, durability, documentLimitBytes, observe };
    const commit = new GroupCommit({ ...common, slowRows, slots: batchSlots, slowLine: slow, limits });
    return { slots: [batchSlots, transactionSlots, slowSlots], lanes, commit, transactions: new Transactions({ ...common, lanes }) };
  }
}

// The fenced store on Postgres: puts the parts of store/ and write/ together. The lock's nodes are
// asked through the `verify` hook only.
import {
  checkName,
  checkTransaction,
  checkWrite,
  isName,
  type TransactionRequest,
  type TransactionVerdict,
  tooLargeToPut,
  type Verdict,
  type VerifyToken,
  type WriteRequest,
} from "./fence/verdict.js";
import type { FencedStore, HistoryResult, StoreEvent, StoreStats } from "./fenced-store.js";
import { type StoreLimits, storeLimits } from "./limits.js";
import { EngineWatch } from "./store/engine.js";
import { Lineage, type Marks } from "./store/lineage.js";
import { type FenceChange, type FenceVerdict, moveFence } from "./store/move-fence.js";
import { type Readiness, readiness } from "./store/readiness.js";
import {
  type HistoryRequest,
  type ListRequest,
  type ListResult,
  listResources,
  ReadPool,
  type ReadResult,
  ResourceReads,
  readHistory,
} from "./store/reads.js";
import { forgetOld } from "./store/retention.js";
import type { Durability } from "./store/session.js";
import { RaiseCheck, WriteVerifier } from "./write/raise-check.js";
import { Rehearsal, WritePaths } from "./write/write-paths.js";

/**
 * Checks the configuration. Connects only when asked something: it resolves while Postgres is away,
 * and `ready()` says so. Migrations are `migrate(databaseUrl)`.
 */
export async function openStore(config: StoreConfig): Promise<FencedStore> {
  return new PostgresStore(config, storeLimits(config));
}

class PostgresStore implements FencedStore {
  readonly #limits: StoreLimits;
  readonly #durability: Durability;
  readonly #history: "off" | "on";
  readonly #verify: "on" | "off";
  readonly #pool: ReadPool;
  readonly #reads: ResourceReads;
  readonly #engine: EngineWatch;
  readonly #paths: WritePaths;
  readonly #verifier: WriteVerifier;
  readonly #rehearsal: Rehearsal;
  readonly #lineage: Lineage | undefined;
  readonly #observe: (event: StoreEvent) => void;
  /** The error last reported: one statement may have ended many writes. */
  #reported: Error | undefined;
  readonly #retention: { stop(): void };
  #closed: Promise<void> | undefined;

  constructor(config: StoreConfig, limits: StoreLimits) {
    const { databaseUrl, durability = "local", history = "off", verify, verifyUnreachable = "refuse", observe = () => {} } = config;
    const onIdleError = (error: Error) => observe({ kind: "connection_error", error });
    const { marks } = config;
    this.#limits = limits;
    this.#durability = durability;
    this.#history = history;
    this.#verify = verify === undefined ? "off" : "on";
    this.#lineage = marks === undefined ? undefined : new Lineage(marks, verifyUnreachable);
    this.#pool = new ReadPool({ ...limits, databaseUrl, size: limits.poolSize, maxWaiting: limits.maxQueuedWrites, onIdleError });
    this.#reads = new ResourceReads(this.#pool, limits.connectTimeoutMs);
    const engine = new EngineWatch(this.#pool, (found) => this.#paths.use(found));
    this.#engine = engine;
    this.#paths = new WritePaths({
      limits,
      connection: { ...limits, databaseUrl, durability, onIdleError, engine, lineage: this.#lineage },
      form: { history, durability, documentLimitBytes: limits.documentLimitBytes },
      observe,
    });
    const { line } = this.#paths.whole;
    this.#rehearsal = new Rehearsal(line, this.#paths.writes);
    this.#observe = observe;
    this.#lineage?.start(line, this.#pool);
    const raises = new RaiseCheck({ verify, unreachable: verifyUnreachable, observe });
    this.#verifier = new WriteVerifier(this.#paths, raises);
    this.#retention = forgetOld({ pool: this.#pool, historyRetentionMs: limits.historyRetentionMs, onError: onIdleError });
  }

  async write(request: WriteRequest): Promise<Verdict> {
    checkWrite(request);
    const [tooLarge] = tooLargeToPut([request], this.#limits.documentLimitBytes);
    if (tooLarge !== undefined) return tooLarge.refusal;
    return this.#reportedIfUnavailable(await this.#verifier.write(request));
  }

  async transaction(request: TransactionRequest): Promise<TransactionVerdict> {
    checkTransaction(request);
    const tooLarge = tooLargeToPut(request.operations, this.#limits.documentLimitBytes);
    if (tooLarge.length > 0) return { kind: "refused", refusals: tooLarge };
    return this.#reportedIfUnavailable(await this.#verifier.transaction(request));
  }

  #reportedIfUnavailable<V extends Verdict | TransactionVerdict>(verdict: V): V {
    if (verdict.kind === "accepted" || verdict.kind === "committed") this.#lineage?.acknowledged();
    if (verdict.kind !== "unavailable" || verdict.cause === undefined || verdict.cause === this.#reported) return verdict;
    this.#reported = verdict.cause;
    this.#observe({ kind: "refused_by_database", error: verdict.cause });
    return verdict;
  }

  async read(resource: string): Promise<ReadResult> {
    checkName(resource);
    return await this.#reads.read(resource, this.#paths.shards === undefined ? "with others" : "alone");
  }

  async list(request: ListRequest): Promise<ListResult> {
    if (request.prefix !== undefined && request.prefix !== "") checkName(request.prefix);
    // Cursors pass through clients. A cursor that is no name was not made here, so no page follows
    // it.
    if (request.cursor !== undefined && !isName(request.cursor)) return { kind: "page", items: [], nextCursor: null };
    const page = await listResources(this.#pool, request);
    if (this.#engine.known === undefined) await this.#engine.look();
    return page.kind === "page" && this.#engine.known?.kind === "citus" ? { ...page, snapshot: false } : page;
  }

  async history(request: HistoryRequest): Promise<HistoryResult> {
    checkName(request.resource);
    return this.#history === "off" ? { kind: "off" } : await readHistory(this.#pool, request);
  }

  async raiseFence(change: FenceChange): Promise<FenceVerdict> {
    return await this.#moveFence("raise", change);
  }

  async lowerFence(change: FenceChange): Promise<FenceVerdict> {
    return await this.#moveFence("lower", change);
  }

  async #moveFence(direction: "raise" | "lower", change: FenceChange): Promise<FenceVerdict> {
    const unknown = this.#engine.known === undefined ? await this.#engine.look() : undefined;
    if (unknown !== undefined) return unknown;
    const { line } = this.#paths.pathOf([change.resource]);
    return await moveFence({ line, durability: this.#durability, engine: this.#engine.known?.kind ?? "plain" }, direction, change);
  }

  async ready(): Promise<Readiness> {
    const other = await this.#engine.look();
    const engineFault = other?.reason === "refused" ? other.cause?.message : undefined;
    const statementFault = () => this.#rehearsal.fault();
    const parts = { pool: this.#pool, durability: this.#durability, verify: this.#verify, lineage: this.#lineage };
    return await readiness({ ...parts, engine: this.#engine.known, engineFault, statementFault });
  }

  stats(): StoreStats {
    const { total, idle, waiting } = this.#pool.connections;
    const paths = this.#paths.all;
    const sum = <T>(items: readonly T[], of: (item: T) => number): number => items.reduce((count, item) => count + of(item), 0);
    const slots = paths.flatMap((path) => path.slots);
    const [inFlight, open] = [sum(slots, (some) => some.inFlight), sum(slots, (some) => some.open)];
    return {
      queuedWrites: sum(paths, ({ commit }) => commit.queued.writes),
      queuedBytes: sum(paths, ({ commit }) => commit.queued.bytes),
      statementsInFlight: inFlight,
      connections: {
        total: total + open,
        idle: idle + Math.max(0, open - inFlight),
        waiting: waiting + sum(paths, ({ line }) => line.waiting),
      },
    };
  }

  close({ drainMs = 10_000 }: { readonly drainMs?: number | undefined } = {}): Promise<void> {
    this.#closed ??= this.#close(drainMs);
    return this.#closed;
  }

  async #close(drainMs: number): Promise<void> {
    this.#retention.stop();
    this.#lineage?.stop();
    this.#engine.stop();
    const drained = this.#paths.drain();
    const timer = setTimeout(() => this.#paths.abandon(), drainMs);
    await drained;
    clearTimeout(timer);
    const timeoutMs = this.#limits.connectTimeoutMs;
    await Promise.all([this.#paths.end(timeoutMs), this.#pool.end()]);
  }
}

// What a store is opened with.

export type StoreConfig = Partial<{ readonly [Limit in keyof StoreLimits]: StoreLimits[Limit] | undefined }> & {
  readonly databaseUrl: string;
  readonly durability?: Durability | undefined;
  readonly history?: "off" | "on" | undefined;
  /** Absent: tokens are trusted. */
  readonly verify?: VerifyToken | undefined;
  /**
   * What happens to a raise that could not be verified: refused (closed, the default) or accepted
   * (open).
   */
  readonly verifyUnreachable?: "refuse" | "accept" | undefined;
  /** Where the state of the database is remembered outside of it; absent: not at all. */
  readonly marks?: Marks | undefined;
  /** For metrics and logs; must not throw. */
  readonly observe?: ((event: StoreEvent) => void) | undefined;
};

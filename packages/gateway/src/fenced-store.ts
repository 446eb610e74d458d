// The fenced store: every question that it answers, to the HTTP layer, the metrics and the tests, and
// the store on Postgres, which puts the parts of store/ and write/ together. The lock's nodes are asked
// through hooks only.
import { undecidedBy } from "./fence/failure.js";
import {
  type Contention,
  checkName,
  checkText,
  checkToken,
  checkTransaction,
  checkWrite,
  isName,
  MAX_NAME_BYTES,
  type OutcomeUnknown,
  type Token,
  type TransactionRequest,
  type TransactionVerdict,
  tooLargeToPut,
  type Unavailable,
  unavailable,
  type Verdict,
  type VerifyToken,
  type WriteRequest,
} from "./fence/verdict.js";
import { type StoreLimits, storeLimits } from "./limits.js";
import { EngineWatch } from "./store/engine.js";
import { ReadPool } from "./store/read-pool.js";
import { type Readiness, readiness } from "./store/readiness.js";
import {
  type FenceMove,
  forgetOld,
  type HistoryPage,
  type HistoryRequest,
  type ListRequest,
  type ListResult,
  listResources,
  type ReadResult,
  ResourceReads,
  readHistory,
  readLastMove,
  readTokenWrites,
  type TokenWrites,
  type WholeResult,
} from "./store/reads.js";
import { type Marks, RestoreCheck } from "./store/restore-check.js";
import { beatDemand, type Durability, durabilityDemand } from "./store/session.js";
import { type Held, type Line, LOCK_TIMED_OUT } from "./store/slots.js";
import type { BatchEvent } from "./write/group-commit.js";
import { RaiseCheck, type RaiseEvent } from "./write/raise-check.js";
import { VerifiedWrites } from "./write/verified-writes.js";
import { WritePaths } from "./write/write-paths.js";

export type {
  Accepted,
  Refused,
  TransactionRequest,
  TransactionVerdict,
  Undecided,
  Verdict,
  VerifyToken,
  WriteRequest,
} from "./fence/verdict.js";
export type { Readiness, ReadinessCheck } from "./store/readiness.js";
export type {
  FenceMove,
  HistoryEntry,
  HistoryRequest,
  ListItem,
  ListRequest,
  ListResult,
  ReadResult,
  ResourceState,
  WholeResult,
} from "./store/reads.js";
export type { Durability } from "./store/session.js";

export type StoreEvent =
  | BatchEvent
  | RaiseEvent
  | { readonly kind: "connection_error"; readonly error: Error }
  /** A write was unavailable because of this error; once for all writes of a statement. */
  | { readonly kind: "refused_by_database"; readonly error: Error };

/** Kept for ever: which credential moved the fence, and why. */
export type FenceChange = { readonly resource: string; readonly token: Token; readonly by: string; readonly reason: string };
export type FenceVerdict =
  | { readonly kind: "changed"; readonly resource: string; readonly previousToken: Token | null; readonly token: Token }
  /** raise to no more than the stored fence, or lower to no less than it: nothing changed. */
  | { readonly kind: "unchanged"; readonly resource: string; readonly currentToken: Token | null }
  | Unavailable
  | OutcomeUnknown
  | Contention;

export type HistoryResult = HistoryPage | { readonly kind: "off" } | Unavailable;

export type StoreStats = {
  readonly queuedWrites: number;
  readonly queuedBytes: number;
  readonly statementsInFlight: number;
  readonly connections: { readonly total: number; readonly idle: number; readonly waiting: number };
};

export interface FencedStore {
  write(request: WriteRequest): Promise<Verdict>;
  transaction(request: TransactionRequest): Promise<TransactionVerdict>;
  /** Without the document where that is large. */
  read(resource: string): Promise<ReadResult>;
  readWhole(resource: string): Promise<WholeResult>;
  list(request: ListRequest): Promise<ListResult>;
  history(request: HistoryRequest): Promise<HistoryResult>;
  /** Of the last 5 000 accepted writes, where they are kept. */
  tokenWrites(resource: string): Promise<readonly TokenWrites[] | Unavailable>;
  /** Undefined: nobody ever moved this fence by hand. */
  lastMove(resource: string): Promise<FenceMove | undefined | Unavailable>;
  raiseFence(change: FenceChange): Promise<FenceVerdict>;
  lowerFence(change: FenceChange): Promise<FenceVerdict>;
  ready(): Promise<Readiness>;
  stats(): StoreStats;
  /**
   * Refuses new work at once (unavailable/closing), finishes accepted work within `drainMs`, then
   * ends every connection.
   */
  close(options?: { readonly drainMs?: number | undefined }): Promise<void>;
}

/** What a store is opened with. */
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
  /** Where the lock's nodes remember the beats of the database; absent: no restore is looked for. */
  readonly marks?: Marks | undefined;
  /** For metrics and logs; must not throw. */
  readonly observe?: ((event: StoreEvent) => void) | undefined;
};

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
  readonly #writes: VerifiedWrites;
  readonly #restoreCheck: RestoreCheck | undefined;
  readonly #observe: (event: StoreEvent) => void;
  /** The error last reported: one statement may have ended many writes. */
  #reported: Error | undefined;
  readonly #retention: { stop(): void };
  #closed: Promise<void> | undefined;

  constructor(config: StoreConfig, limits: StoreLimits) {
    const { databaseUrl, durability = "local", history = "off", verify, verifyUnreachable = "refuse", observe = () => {} } = config;
    const onIdleError = (error: Error) => observe({ kind: "connection_error", error });
    this.#limits = limits;
    this.#durability = durability;
    this.#history = history;
    this.#verify = verify === undefined ? "off" : "on";
    this.#pool = new ReadPool({ ...limits, databaseUrl, size: limits.poolSize, maxWaiting: limits.maxQueuedWrites, onIdleError });
    const count = (atLeast: number) => this.#paths.beat(atLeast);
    this.#restoreCheck = config.marks && new RestoreCheck({ marks: config.marks, unreachable: verifyUnreachable, pool: this.#pool, count });
    this.#reads = new ResourceReads(this.#pool, limits.connectTimeoutMs, this.#restoreCheck);
    const engine = new EngineWatch(this.#pool, (found) => this.#paths.use(found));
    this.#engine = engine;
    this.#paths = new WritePaths({
      limits,
      connection: { ...limits, databaseUrl, durability, onIdleError, engine, restoreCheck: this.#restoreCheck },
      form: { history, durability, documentLimitBytes: limits.documentLimitBytes },
      observe,
    });
    this.#observe = observe;
    this.#restoreCheck?.start();
    const raises = new RaiseCheck({ verify, unreachable: verifyUnreachable, observe });
    this.#writes = new VerifiedWrites(this.#paths, raises);
    this.#retention = forgetOld({ pool: this.#pool, historyRetentionMs: limits.historyRetentionMs, onError: onIdleError });
  }

  async write(request: WriteRequest): Promise<Verdict> {
    checkWrite(request);
    const [tooLarge] = tooLargeToPut([request], this.#limits.documentLimitBytes);
    if (tooLarge !== undefined) return tooLarge.refusal;
    return this.#reportedIfUnavailable(await this.#writes.write(request));
  }

  async transaction(request: TransactionRequest): Promise<TransactionVerdict> {
    checkTransaction(request);
    const tooLarge = tooLargeToPut(request.operations, this.#limits.documentLimitBytes);
    if (tooLarge.length > 0) return { kind: "refused", refusals: tooLarge };
    return this.#reportedIfUnavailable(await this.#writes.transaction(request));
  }

  #reportedIfUnavailable<V extends Verdict | TransactionVerdict>(verdict: V): V {
    if (verdict.kind === "accepted" || verdict.kind === "committed") this.#restoreCheck?.acknowledged();
    if (verdict.kind !== "unavailable" || verdict.cause === undefined || verdict.cause === this.#reported) return verdict;
    this.#reported = verdict.cause;
    this.#observe({ kind: "refused_by_database", error: verdict.cause });
    return verdict;
  }

  async read(resource: string): Promise<ReadResult> {
    checkName(resource);
    const looking = this.#restoreCheck?.refusalOfRead();
    const lost = looking === undefined ? undefined : await looking;
    return lost ?? (await this.#reads.read(resource, this.#paths.shards === undefined ? "with others" : "alone"));
  }

  async readWhole(resource: string): Promise<WholeResult> {
    checkName(resource);
    const lost = await this.#restoreCheck?.refusalOfRead();
    return lost ?? (await this.#reads.readWhole(resource, this.#paths.shards === undefined ? "with others" : "alone"));
  }

  async list(request: ListRequest): Promise<ListResult> {
    if (request.prefix !== undefined && request.prefix !== "") checkName(request.prefix);
    // Cursors pass through clients. A cursor that is no name was not made here, so no page follows
    // it.
    if (request.cursor !== undefined && !isName(request.cursor)) return { kind: "page", items: [], nextCursor: null };
    const page = (await this.#restoreCheck?.refusalOfRead()) ?? (await listResources(this.#pool, request));
    if (this.#engine.known === undefined) await this.#engine.look();
    return page.kind === "page" && this.#engine.known?.kind === "citus" ? { ...page, snapshot: false } : page;
  }

  async history(request: HistoryRequest): Promise<HistoryResult> {
    checkName(request.resource);
    if (this.#history === "off") return { kind: "off" };
    return (await this.#restoreCheck?.refusalOfRead()) ?? (await readHistory(this.#pool, request));
  }

  async tokenWrites(resource: string): Promise<readonly TokenWrites[] | Unavailable> {
    checkName(resource);
    return (await this.#restoreCheck?.refusalOfRead()) ?? (await readTokenWrites(this.#pool, resource));
  }

  async lastMove(resource: string): Promise<FenceMove | undefined | Unavailable> {
    checkName(resource);
    return (await this.#restoreCheck?.refusalOfRead()) ?? (await readLastMove(this.#pool, resource));
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
    const keptBy = this.#paths.shards === undefined ? "this server" : "a worker";
    return await moveFence({ line, durability: this.#durability, keptBy }, { direction, ...change });
  }

  async ready(): Promise<Readiness> {
    const other = await this.#engine.look();
    const engineFault = other?.reason === "refused" ? other.cause?.message : undefined;
    const statementFault = () => this.#paths.statementFault();
    const parts = { pool: this.#pool, durability: this.#durability, verify: this.#verify, restoreCheck: this.#restoreCheck };
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
    this.#restoreCheck?.stop();
    this.#engine.stop();
    const drained = this.#paths.drain();
    const timer = setTimeout(() => this.#paths.abandon(), drainMs);
    await drained;
    clearTimeout(timer);
    const timeoutMs = this.#limits.connectTimeoutMs;
    await Promise.all([this.#paths.end(timeoutMs), this.#pool.end()]);
  }
}

// Moving a fence by hand, up or down, with an audit row in the same statement. For operators only:
// after a fence is lowered, the tokens it refused are accepted again (G1).

/** No row when the transaction would not be as durable as demanded: then nothing was called. */
const textFor = (durability: Durability): string =>
  `select changed, previous from palisade.move_fence($1, $2, $3::bigint, $4, $5) where ${durabilityDemand[durability]} and ${beatDemand(6)}`;

/** Fails where the worker of Citus that keeps the row does not commit so: the statement asks the coordinator only. */
const DEMAND_OF_WORKER = "select palisade.demand_durability(resource, $2::text) from palisade.resources where resource = $1::text";

async function moveFence(
  { line, durability, keptBy }: { readonly line: Line; readonly durability: Durability; readonly keptBy: "this server" | "a worker" },
  { direction, resource, token, by, reason }: FenceChange & { readonly direction: "raise" | "lower" },
): Promise<FenceVerdict> {
  checkName(resource);
  checkToken(token);
  checkText({ text: by, what: "who moves a fence", maxBytes: MAX_NAME_BYTES });
  checkText({ text: reason, what: "the reason to move a fence", maxBytes: 4_096 });
  const values = [direction, resource, String(token), by, reason];
  const statement = { name: "", text: textFor(durability), values, demandsBeat: true } as const;
  const verdict = await line.use([resource], async (connection): Promise<FenceVerdict | Held> => {
    const reply = await connection.transaction("palisade-move-fence", async (run) => {
      const rows = await run(statement);
      if (keptBy === "a worker") await run({ name: "", text: DEMAND_OF_WORKER, values: [resource, durability] });
      return rows;
    });
    if ("failure" in reply) {
      const { failure } = reply;
      if (failure.kind === "unknown" || failure.kind === "unavailable") return undecidedBy(failure);
      return failure.code === LOCK_TIMED_OUT ? { kind: "held", rows: [resource] } : { kind: "contention", resource, code: failure.code };
    }
    if (reply.rows[0] === undefined) return unavailable("not_durable");
    const [changed, previous] = reply.rows[0];
    const previousToken = typeof previous === "number" ? previous : null;
    return changed === true
      ? { kind: "changed", resource, previousToken, token }
      : { kind: "unchanged", resource, currentToken: previousToken };
  });
  return verdict.kind === "held" ? { kind: "contention", resource, code: LOCK_TIMED_OUT } : verdict;
}

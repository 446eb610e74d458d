// The fenced store as the HTTP layer sees it: every question it may ask of Postgres, and the one place where the parts of the store are put together.
// It knows neither HTTP nor Redis: the lock's nodes are asked through the `verify` hook only.
import type {
  Token,
  TransactionRequest,
  TransactionVerdict,
  Unavailable,
  Verdict,
  WriteOperation,
  WriteRequest,
} from "../guard/verdict.js";

/** Was this token, or a higher one, ever issued for this resource? Called only when a write carries a token above the stored fence. Must not throw; a throw counts as unreachable. */
export type VerifyToken = (resource: string, token: Token) => Promise<"issued" | "unissued" | "unreachable">;

export type Durability = "local" | "sync";

export type StoreConfig = {
  readonly databaseUrl: string;
  readonly durability?: Durability | undefined;
  readonly history?: "off" | "on" | undefined;
  /** Absent: tokens are taken on trust. */
  readonly verify?: VerifyToken | undefined;
  /** What becomes of a raise that could not be verified: refused (closed, the default) or accepted (open). */
  readonly verifyUnreachable?: "refuse" | "accept" | undefined;
  /** Connections for reads and transactions, and, apart from them, `statementsInFlight` for single writes. */
  readonly poolSize?: number | undefined;
  readonly statementsInFlight?: number | undefined;
  readonly maxBatchRows?: number | undefined;
  readonly maxBatchBytes?: number | undefined;
  /** Waiting writes; beyond it the answer is unavailable/overloaded. */
  readonly maxQueuedWrites?: number | undefined;
  readonly maxQueuedBytes?: number | undefined;
  /** Own timer from sending to answer; then outcome_unknown, and the connection is destroyed. */
  readonly writeTimeoutMs?: number | undefined;
  readonly readTimeoutMs?: number | undefined;
  readonly connectTimeoutMs?: number | undefined;
  /** How long a write waits for a row that somebody's transaction has locked; then contention. */
  readonly lockWaitMs?: number | undefined;
  /** How long a used idempotency key is remembered (default 24 h). */
  readonly idempotencyRetentionMs?: number | undefined;
  /** For metrics and logs; must not throw. */
  readonly observe?: ((event: StoreEvent) => void) | undefined;
};

export type StoreEvent =
  | {
      readonly kind: "batch";
      readonly rows: number;
      readonly durationMs: number;
      readonly outcome: "ok" | "retried" | "unavailable" | "unknown";
    }
  | { readonly kind: "raised"; readonly resource: string; readonly token: Token }
  | { readonly kind: "verified"; readonly resource: string; readonly token: Token; readonly answer: "issued" | "unissued" | "unreachable" }
  | { readonly kind: "retried"; readonly code: string; readonly rows: number }
  | { readonly kind: "connection_error"; readonly error: Error };

export type ResourceState = {
  readonly resource: string;
  readonly token: Token;
  readonly rev: number;
  readonly seq: number;
  readonly holder: string | null;
  readonly updatedAt: Date;
};

export type ReadResult =
  | (ResourceState & { readonly kind: "found"; readonly value: string })
  /** A fence without a document: deleted, or sealed and never written. */
  | (ResourceState & { readonly kind: "absent" })
  | { readonly kind: "unknown_resource"; readonly resource: string }
  | Unavailable;

export type ListRequest = {
  readonly prefix?: string | undefined;
  readonly limit: number;
  /** The `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
  /** "documents" adds `value`; a page then also ends when its documents reach about 4 MB. */
  readonly include?: "fences" | "documents" | undefined;
};
export type ListResult =
  | {
      readonly kind: "page";
      readonly items: readonly (ResourceState & { readonly value?: string | undefined })[];
      readonly nextCursor: string | null;
    }
  | Unavailable;

export type HistoryRequest = {
  readonly resource: string;
  readonly limit: number /** Entries with a revision below this one. */;
  readonly beforeRev?: number | undefined;
};
export type HistoryEntry = {
  readonly rev: number;
  readonly op: Exclude<WriteOperation, "seal">;
  readonly token: Token;
  readonly seq: number;
  readonly holder: string | null;
  readonly at: Date;
};
/** Newest first. */
export type HistoryResult =
  | { readonly kind: "history"; readonly entries: readonly HistoryEntry[]; readonly nextBeforeRev: number | null }
  | { readonly kind: "off" }
  | Unavailable;

/** Break-glass: who did it and why goes to the audit table in the same transaction. */
export type FenceChange = { readonly resource: string; readonly token: Token; readonly by: string; readonly reason: string };
export type FenceVerdict =
  | { readonly kind: "changed"; readonly resource: string; readonly previousToken: Token | null; readonly token: Token }
  /** raise to less than the stored fence, or lower to no less than it: nothing was changed. */
  | { readonly kind: "unchanged"; readonly resource: string; readonly currentToken: Token | null }
  | Extract<Verdict, { kind: "unavailable" | "outcome_unknown" | "contention" }>;

export type ReadinessCheck = { readonly name: string; readonly status: "ok" | "warning" | "failed"; readonly detail: string };
/** ready is false when any check failed. Warnings name what the operator chose to live with (local durability, tokens taken on trust). */
export type Readiness = { readonly ready: boolean; readonly checks: readonly ReadinessCheck[] };

export type StoreStats = {
  readonly queuedWrites: number;
  readonly queuedBytes: number;
  readonly statementsInFlight: number;
  readonly connections: { readonly total: number; readonly idle: number; readonly waiting: number };
};

export interface FencedStore {
  write(request: WriteRequest): Promise<Verdict>;
  transaction(request: TransactionRequest): Promise<TransactionVerdict>;
  read(resource: string): Promise<ReadResult>;
  list(request: ListRequest): Promise<ListResult>;
  history(request: HistoryRequest): Promise<HistoryResult>;
  raiseFence(change: FenceChange): Promise<FenceVerdict>;
  lowerFence(change: FenceChange): Promise<FenceVerdict>;
  ready(): Promise<Readiness>;
  stats(): StoreStats;
  /** Refuses new work at once (unavailable/closing), finishes what was accepted within `drainMs`, then ends every connection. */
  close(options?: { readonly drainMs?: number | undefined }): Promise<void>;
}

/** Checks the configuration and opens no connection that it could not open lazily: it resolves even when Postgres is away, and `ready()` says so. Migrations are `migrate(databaseUrl)`. */
export async function openStore(config: StoreConfig): Promise<FencedStore> {
  throw new Error(`not built yet: ${config.databaseUrl.length}`);
}

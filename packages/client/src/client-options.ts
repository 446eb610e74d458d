// What a client of the gateway can do, one method per route.
import type {
  CallOptions,
  FenceChange,
  GetOptions,
  HistoryOptions,
  ListOptions,
  Operation,
  RefusedOptions,
  SealOptions,
  TransactionOptions,
  WriteOptions,
} from "./options.js";
import type {
  DeleteResult,
  FenceChangeResult,
  FenceResult,
  GetResult,
  HistoryResult,
  ListResult,
  PatchResult,
  PutResult,
  RefusedResult,
  SealResult,
  TransactionResult,
} from "./results.js";
import type { RetryPolicy } from "./retry.js";

/** What createGatewayClient takes. */
export interface GatewayClientOptions {
  /** Where the gateway listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** An API key or a JWT, sent as `Authorization: Bearer`. */
  readonly apiKey?: string | undefined;
  /** In place of the global one: for tests, proxies, tracing. */
  readonly fetch?: typeof fetch | undefined;
  /** For one try; 10 seconds when absent. */
  readonly timeoutMs?: number | undefined;
  /** How often and how long a call is repeated that is safe to repeat. */
  readonly retry?: Partial<RetryPolicy> | undefined;
}

/**
 * The calls of the gateway, one method per route. A refusal is an answer with `ok: false`; a call
 * throws only when its arguments cannot be right, before anything is sent.
 */
export interface GatewayClient {
  /** Stores a document, in place of the one that is there. */
  put(resource: string, value: unknown, options: WriteOptions): Promise<PutResult>;
  /** Changes members of a document by a JSON merge patch (RFC 7396). */
  patch<T = unknown>(resource: string, mergePatch: unknown, options: WriteOptions): Promise<PatchResult<T>>;
  /** Deletes a document; its fence and revision stay. */
  delete(resource: string, options: WriteOptions): Promise<DeleteResult>;
  /** Reads a document. Needs no lease; what a writer reads should come from `seal`. */
  get<T = unknown>(resource: string, options?: GetOptions): Promise<GetResult<T>>;
  /**
   * Raises the fence to the token without writing, and reads: no older holder can change what it
   * returns.
   */
  seal<T = unknown>(resource: string, options: SealOptions): Promise<SealResult<T>>;
  /** Several writes and seals of one or several resources, all or none. */
  transaction(operations: readonly Operation[], options?: TransactionOptions): Promise<TransactionResult>;
  /** Names, fences or documents under a prefix, a page at a time. */
  list(options?: ListOptions): Promise<ListResult>;
  /** Accepted writes, newest first; `not_found` where the gateway keeps no history. */
  history(resource: string, options?: HistoryOptions): Promise<HistoryResult>;
  /** What the gateway that answers has refused, newest first: its last 1 000 since its start. */
  refused(options?: RefusedOptions): Promise<RefusedResult>;
  /** The fence of a resource and its last holder, with or without a document. */
  fence(resource: string, options?: CallOptions): Promise<FenceResult>;
  /** Moves a fence by hand; the credential and the reason are kept. Needs an admin scope. */
  changeFence(resource: string, change: FenceChange, options?: CallOptions): Promise<FenceChangeResult>;
}

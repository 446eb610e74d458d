// What a client of the gateway can do, one method per route: builds requests and reads answers.

import { openExchange } from "#exchange";
import type { Expected, Fields, Success } from "./answer.js";
import { overFetch } from "./exchange.js";
import { baseUrl, checkApiKey, checkLease, checkMilliseconds, checkOptions } from "./misuse.js";
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
import { fencingHeader, jsonTextOf, memberText, noteNumber, queryText, resourcePath, tokenFor, tokenOf } from "./request-format.js";
import type {
  ConditionalGetResult,
  DeleteResult,
  FenceChangeResult,
  FenceResult,
  GetResult,
  HistoryResult,
  ListResult,
  PatchResult,
  PutResult,
  Refusal,
  RefusedResult,
  SealResult,
  TransactionResult,
} from "./results.js";
import { type Retried, type RetryPolicy, seenBefore, sendWithRetry } from "./retry.js";
import { tracing } from "./spans.js";
import { type Call, createTransport, type Transport } from "./transport.js";

/** What createGatewayClient takes. */
export interface GatewayClientOptions {
  /** Where the gateway listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** An API key or a JWT, sent as `Authorization: Bearer`. */
  readonly apiKey?: string | undefined;
  /**
   * For tests, proxies, tracing. When absent, Node sends over connections of `node:http` that it keeps,
   * and every other runtime by the global one.
   */
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
  get<T = unknown>(resource: string, options?: CallOptions & { readonly ifNoneMatch?: undefined }): Promise<GetResult<T>>;
  /** The same, unless the stored revision is still `ifNoneMatch`. */
  get<T = unknown>(resource: string, options: GetOptions): Promise<ConditionalGetResult<T>>;
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
  /** What the gateway that answers has refused, newest first: its last 1 000 that differ, since its start. */
  refused(options?: RefusedOptions): Promise<RefusedResult>;
  /** The fence of a resource, its last holder, with or without a document, and who last moved it by hand. */
  fence(resource: string, options?: CallOptions): Promise<FenceResult>;
  /** Moves a fence by hand; the credential and the reason are kept. Needs an admin scope. */
  changeFence(resource: string, change: FenceChange, options?: CallOptions): Promise<FenceChangeResult>;
}

/** A client of one gateway; sends nothing. Throws TypeError or RangeError for a wrong option. */
export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  checkOptions("createGatewayClient", options, ["url", "apiKey", "fetch", "timeoutMs", "retry"]);
  checkApiKey(options.apiKey);
  checkMilliseconds("timeoutMs", options.timeoutMs);
  if (options.retry !== undefined) checkOptions("retry", options.retry, ["attempts", "forMs", "firstPauseMs", "longestPauseMs"]);
  return new HttpClient(options);
}

const ofCall = ["signal", "timeoutMs"];
const ofHolder = [...ofCall, "lease", "token"];
const ofWrite = [...ofHolder, "seq", "ifMatch", "ifNoneMatch"];

const json = { "content-type": "application/json" };
const mergePatchType = { "content-type": "application/merge-patch+json" };

const written = { PUT: [200, 201], PATCH: [200], DELETE: [204] } as const;

class HttpClient implements GatewayClient {
  readonly #base: string;
  readonly #transport: Transport;
  readonly #timeoutMs: number;
  readonly #retry: RetryPolicy;

  constructor(options: GatewayClientOptions) {
    this.#base = baseUrl(options.url);
    this.#transport = createTransport(this.#base, options.apiKey, options.fetch === undefined ? openExchange : overFetch(options.fetch));
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#retry = { attempts: 1_000, forMs: 30_000, firstPauseMs: 50, longestPauseMs: 2_000, ...options.retry };
  }

  async put(resource: string, value: unknown, options: WriteOptions): Promise<PutResult> {
    checkOptions("put", options, ofWrite);
    const answer = await this.#write("PUT", resource, { ...options, body: jsonTextOf(value), contentType: json });
    return answer.ok ? { ...stored(resource, answer), created: answer.status === 201 } : answer;
  }

  async patch<T>(resource: string, mergePatch: unknown, options: WriteOptions): Promise<PatchResult<T>> {
    checkOptions("patch", options, ofWrite);
    const answer = await this.#write("PATCH", resource, { ...options, body: jsonTextOf(mergePatch), contentType: mergePatchType });
    if (!answer.ok) return answer;
    const text = memberText(answer.text);
    return text === undefined
      ? stored(resource, answer)
      : { ...stored(resource, answer), value: (answer.body as { value: T }).value, text };
  }

  async delete(resource: string, options: WriteOptions): Promise<DeleteResult> {
    checkOptions("delete", options, ofWrite);
    const answer = await this.#write("DELETE", resource, options);
    return answer.ok ? stored(resource, answer) : answer;
  }

  get<T>(resource: string, options?: CallOptions & { readonly ifNoneMatch?: undefined }): Promise<GetResult<T>>;
  get<T>(resource: string, options: GetOptions): Promise<ConditionalGetResult<T>>;
  async get<T>(resource: string, options: GetOptions = {}): Promise<ConditionalGetResult<T>> {
    checkOptions("get", options, [...ofCall, "ifNoneMatch"]);
    const { ifNoneMatch } = options;
    const headers: Record<string, string> = ifNoneMatch === undefined ? {} : { "if-none-match": `"${ifNoneMatch}"` };
    const answer = await this.#send({
      ...this.#call(options),
      method: "GET",
      path: `/v1/resources/${resourcePath(resource)}`,
      headers,
      repeatable: "yes",
      subject: { operation: "get", resource },
      expects: { statuses: ifNoneMatch === undefined ? [200] : [200, 304], token: "any", rev: ifNoneMatch ?? "any", body: () => true },
    });
    if (!answer.ok) return answer;
    const { rev, token, text, body } = answer;
    return answer.status === 304
      ? { ok: true, modified: false, rev, token }
      : { ok: true, modified: true, rev, token, value: body as T, text };
  }

  async seal<T>(resource: string, options: SealOptions): Promise<SealResult<T>> {
    checkOptions("seal", options, ofHolder);
    const token = tokenFor(resource, options);
    const headers = { "fencing-token": fencingHeader(token, undefined) };
    const path = `/v1/resources/${resourcePath(resource)}/seal`;
    const answer = await this.#send({
      ...this.#call(options),
      method: "POST",
      path,
      headers,
      leaseSignal: options.lease?.signal,
      repeatable: "yes",
      subject: { operation: "seal", resource, token },
      // What was sealed and never written has revision 0, which no entity tag names.
      expects: { statuses: [200], token, body: (body, rev) => isReceipt(body, resource, token) && body.rev === rev && "value" in body },
    });
    if (!answer.ok) return answer;
    const { value } = answer.body as { readonly value: T | null };
    return { ok: true, resource, token, rev: answer.rev, value, text: memberText(answer.text) ?? "null" };
  }

  async transaction(operations: readonly Operation[], options: TransactionOptions = {}): Promise<TransactionResult> {
    checkOptions("transaction", options, [...ofHolder, "seq"]);
    for (const { resource, token } of operations) if (token === undefined) checkLease(resource, options.lease?.resources);
    const holder = options.lease === undefined && options.token === undefined ? undefined : tokenOf(options);
    const headers: Record<string, string> = { ...json };
    if (holder !== undefined) headers["fencing-token"] = fencingHeader(holder, options.seq);
    else if (options.seq !== undefined) throw new TypeError("seq numbers the operations under { lease } or { token }, which is missing");
    const seqs = operations.map(({ token, seq }) => seq ?? (token === undefined ? options.seq : undefined));
    for (const [index, { resource, token = holder }] of operations.entries()) noteNumber(resource, token, seqs[index]);
    const answer = await this.#send({
      ...this.#call(options),
      method: "POST",
      path: "/v1/transactions",
      headers,
      body: `{"operations":[${operations.map(operationText).join(",")}]}`,
      leaseSignal: options.lease?.signal,
      // One number that is found used refuses the whole.
      repeatable: seqs.every((seq) => seq === undefined) ? "no" : "yes",
      subject: { operation: "transaction", token: holder },
      expects: {
        statuses: [200],
        body: ({ results }) =>
          Array.isArray(results) &&
          results.length === operations.length &&
          operations.every(({ resource, token = holder }, index) => isReceipt(results[index], resource, token)),
      },
    });
    if (answer.ok) {
      const { results } = answer.body as Pick<Extract<TransactionResult, { ok: true }>, "results">;
      return { ok: true, results, replayed: false };
    }
    const revs = seenBefore(answer, seqs);
    if (revs === undefined) return answer;
    const results = operations.map(({ resource, token = holder ?? 0 }, index) => ({ resource, token, rev: revs[index] ?? 0 }));
    return { ok: true, results, replayed: true };
  }

  async list(options: ListOptions = {}): Promise<ListResult> {
    checkOptions("list", options, [...ofCall, "prefix", "limit", "cursor", "include", "tombstones"]);
    const { prefix, limit, cursor, include, tombstones } = options;
    const path = `/v1/resources${queryText({ prefix, limit, cursor, include, tombstones })}`;
    return await this.#read(options, { path, subject: { operation: "list" }, body: ({ items }) => Array.isArray(items) });
  }

  async history(resource: string, options: HistoryOptions = {}): Promise<HistoryResult> {
    checkOptions("history", options, [...ofCall, "limit", "before"]);
    const { limit, before } = options;
    const path = `/v1/history/${resourcePath(resource)}${queryText({ limit, before })}`;
    const body = (page: Fields): boolean => page.resource === resource && Array.isArray(page.entries);
    return await this.#read(options, { path, subject: { operation: "history", resource }, body });
  }

  async refused(options: RefusedOptions = {}): Promise<RefusedResult> {
    checkOptions("refused", options, [...ofCall, "prefix", "since", "limit", "before"]);
    const { prefix, since, limit, before } = options;
    const path = `/v1/refused${queryText({ prefix, since: since?.toISOString(), limit, before })}`;
    return await this.#read(options, { path, subject: { operation: "refused" }, body: ({ entries }) => Array.isArray(entries) });
  }

  async fence(resource: string, options: CallOptions = {}): Promise<FenceResult> {
    checkOptions("fence", options, ofCall);
    const path = `/v1/fences/${resourcePath(resource)}`;
    const body = (fence: Fields): boolean => fence.resource === resource && typeof fence.token === "number";
    return await this.#read(options, { path, subject: { operation: "fence", resource }, token: "any", body });
  }

  async changeFence(resource: string, change: FenceChange, options: CallOptions = {}): Promise<FenceChangeResult> {
    checkOptions("changeFence", change, ["action", "token", "reason"]);
    checkOptions("changeFence", options, ofCall);
    const { action, token, reason } = change;
    const answer = await this.#send({
      ...this.#call(options),
      method: "POST",
      path: `/v1/fences/${resourcePath(resource)}`,
      headers: json,
      body: JSON.stringify({ action, token: tokenOf({ token }), reason }),
      // A second try would be told that the fence is there already, and not by whom it was moved.
      repeatable: "no",
      subject: { operation: "changeFence", resource, token },
      expects: { statuses: [200], token, body: (body) => body.resource === resource && body.token === token },
    });
    return answer.ok ? { ok: true, ...(answer.body as Omit<Extract<FenceChangeResult, { ok: true }>, "ok">) } : answer;
  }

  /** A read whose answer is one JSON object. */
  async #read<T extends { readonly ok: true }>(
    options: CallOptions,
    { token, body, ...asked }: Pick<Call, "path" | "subject"> & Pick<Expected, "token" | "body">,
  ): Promise<T | Refusal> {
    const expects = { statuses: [200], token, body };
    const answer = await this.#send({ ...this.#call(options), ...asked, method: "GET", headers: {}, repeatable: "yes", expects });
    return answer.ok ? ({ ok: true, ...(answer.body as object) } as T) : answer;
  }

  async #write(method: keyof typeof written, resource: string, options: WriteOptions & Partial<Body>): Promise<Success | Refusal> {
    const { seq, ifMatch, ifNoneMatch, lease } = options;
    const token = tokenFor(resource, options);
    const headers: Record<string, string> = { ...options.contentType, "fencing-token": fencingHeader(token, seq) };
    if (ifMatch !== undefined) headers["if-match"] = ifMatch === "*" ? "*" : `"${ifMatch}"`;
    if (ifNoneMatch !== undefined) headers["if-none-match"] = ifNoneMatch;
    noteNumber(resource, token, seq);
    const answer = await this.#send({
      ...this.#call(options),
      method,
      path: `/v1/resources/${resourcePath(resource)}`,
      headers,
      body: options.body,
      leaseSignal: lease?.signal,
      repeatable: seq === undefined ? "no" : "yes",
      subject: { operation: method.toLowerCase(), resource, token },
      expects: {
        statuses: written[method],
        token,
        rev: "any",
        ...(method === "DELETE" ? {} : { body: (body, rev) => isReceipt(body, resource, token) && body.rev === rev }),
      },
    });
    const [rev] = seenBefore(answer, [seq]) ?? [];
    return rev === undefined ? answer : { ok: true, status: 409, text: "{}", body: {}, rev, token, replayed: true };
  }

  #call(options: CallOptions): Pick<Retried, "signal" | "timeoutMs"> {
    checkMilliseconds("timeoutMs", options.timeoutMs);
    return { signal: options.signal, timeoutMs: options.timeoutMs ?? this.#timeoutMs };
  }

  #send(call: Retried): Promise<Success | Refusal> {
    const { spans } = tracing;
    if (spans === undefined) return sendWithRetry(this.#transport, call, this.#retry);
    const sent = { ...call.subject, method: call.method, base: this.#base };
    return spans.call(sent, (headers) =>
      sendWithRetry(this.#transport, { ...call, headers: { ...call.headers, ...headers } }, this.#retry),
    );
  }
}

interface Body {
  readonly body: string;
  readonly contentType: Readonly<Record<string, string>>;
}

/** What is stored after one write or seal, alone or in a transaction. */
function isReceipt(body: unknown, resource: string, token: number | undefined): boolean {
  const receipt = (body ?? {}) as Fields;
  return receipt.resource === resource && receipt.token === token && typeof receipt.rev === "number";
}

/** Its document stays text, so that its numbers keep every digit. */
function operationText(operation: Operation): string {
  const { value, ...head } = operation as Operation & { readonly value?: unknown };
  const text = JSON.stringify(head);
  return operation.op === "put" || operation.op === "patch" ? `${text.slice(0, -1)},"value":${jsonTextOf(value)}}` : text;
}

function stored(
  resource: string,
  { token, rev, replayed }: Success,
): { ok: true; resource: string; token: number; rev: number; replayed: boolean } {
  return { ok: true, resource, token, rev, replayed };
}

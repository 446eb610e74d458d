// The calls of the client, one method per route: builds requests and reads answers.

import type { GatewayClient, GatewayClientOptions } from "./client-options.js";
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
import { type CallSubject, tracing } from "./spans.js";
import { operationText } from "./transaction-body.js";
import { createTransport, type Success, type Transport } from "./transport.js";

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

class HttpClient implements GatewayClient {
  readonly #base: string;
  readonly #transport: Transport;
  readonly #timeoutMs: number;
  readonly #retry: RetryPolicy;

  constructor(options: GatewayClientOptions) {
    this.#base = baseUrl(options.url);
    this.#transport = createTransport(this.#base, options.apiKey, options.fetch ?? globalThis.fetch);
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
    return text === undefined ? stored(resource, answer) : { ...stored(resource, answer), value: JSON.parse(text) as T, text };
  }

  async delete(resource: string, options: WriteOptions): Promise<DeleteResult> {
    checkOptions("delete", options, ofWrite);
    const answer = await this.#write("DELETE", resource, options);
    return answer.ok ? stored(resource, answer) : answer;
  }

  async get<T>(resource: string, options: GetOptions = {}): Promise<GetResult<T>> {
    checkOptions("get", options, [...ofCall, "ifNoneMatch"]);
    const headers: Record<string, string> = options.ifNoneMatch === undefined ? {} : { "if-none-match": `"${options.ifNoneMatch}"` };
    const answer = await this.#send({
      ...this.#call(options),
      method: "GET",
      path: `/v1/resources/${resourcePath(resource)}`,
      headers,
      repeatable: "yes",
      subject: { operation: "get", resource },
    });
    if (!answer.ok) return answer;
    const { rev, token, text } = answer;
    return answer.status === 304
      ? { ok: true, modified: false, rev, token }
      : { ok: true, modified: true, rev, token, value: JSON.parse(text) as T, text };
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
    });
    if (!answer.ok) return answer;
    const text = memberText(answer.text) ?? "null";
    const { token: fence, rev, value } = JSON.parse(answer.text) as { token: number; rev: number; value: T | null };
    return { ok: true, resource, token: fence, rev, value, text };
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
    });
    if (answer.ok) {
      const { results } = JSON.parse(answer.text) as Pick<Extract<TransactionResult, { ok: true }>, "results">;
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
    return await this.#read(`/v1/resources${queryText({ prefix, limit, cursor, include, tombstones })}`, options, { operation: "list" });
  }

  async history(resource: string, options: HistoryOptions = {}): Promise<HistoryResult> {
    checkOptions("history", options, [...ofCall, "limit", "before"]);
    const { limit, before } = options;
    return await this.#read(`/v1/history/${resourcePath(resource)}${queryText({ limit, before })}`, options, {
      operation: "history",
      resource,
    });
  }

  async refused(options: RefusedOptions = {}): Promise<RefusedResult> {
    checkOptions("refused", options, [...ofCall, "prefix", "since", "limit", "before"]);
    const { prefix, since, limit, before } = options;
    return await this.#read(`/v1/refused${queryText({ prefix, since: since?.toISOString(), limit, before })}`, options, {
      operation: "refused",
    });
  }

  async fence(resource: string, options: CallOptions = {}): Promise<FenceResult> {
    checkOptions("fence", options, ofCall);
    return await this.#read(`/v1/fences/${resourcePath(resource)}`, options, { operation: "fence", resource });
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
    });
    return answer.ok ? { ok: true, ...(JSON.parse(answer.text) as Omit<Extract<FenceChangeResult, { ok: true }>, "ok">) } : answer;
  }

  /** A read whose answer is one JSON object. */
  async #read<T extends { readonly ok: true }>(path: string, options: CallOptions, subject: CallSubject): Promise<T | Refusal> {
    const answer = await this.#send({ ...this.#call(options), method: "GET", path, headers: {}, repeatable: "yes", subject });
    return answer.ok ? ({ ok: true, ...(JSON.parse(answer.text) as object) } as T) : answer;
  }

  async #write(method: "PUT" | "PATCH" | "DELETE", resource: string, options: WriteOptions & Partial<Body>): Promise<Success | Refusal> {
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
    });
    const [rev] = seenBefore(answer, [seq]) ?? [];
    return rev === undefined ? answer : { ok: true, status: 409, text: "{}", rev, token, replayed: true };
  }

  #call(options: CallOptions): Pick<Retried, "signal" | "timeoutMs"> {
    checkMilliseconds("timeoutMs", options.timeoutMs);
    return { signal: options.signal, timeoutMs: options.timeoutMs ?? this.#timeoutMs };
  }

  #send({ subject, ...call }: Retried & { readonly subject: CallSubject }): Promise<Success | Refusal> {
    const { spans } = tracing;
    if (spans === undefined) return sendWithRetry(this.#transport, call, this.#retry);
    const sent = { ...subject, method: call.method, base: this.#base };
    return spans.call(sent, (headers) =>
      sendWithRetry(this.#transport, { ...call, headers: { ...call.headers, ...headers } }, this.#retry),
    );
  }
}

interface Body {
  readonly body: string;
  readonly contentType: Readonly<Record<string, string>>;
}

function stored(
  resource: string,
  { token, rev, replayed }: Success,
): { ok: true; resource: string; token: number; rev: number; replayed: boolean } {
  return { ok: true, resource, token, rev, replayed };
}

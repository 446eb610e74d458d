// What every request passes: header count, capacity, credential and rate, and the resource that it
// names, before its route runs; one answer, one count and one log line after it. Nothing thrown here
// leaves a request unanswered.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { RefusedWrite } from "@palisade/page";
import type { FencedStore } from "../fenced-store.js";
import { type Log, levelOf, traceOf } from "../observe/log.js";
import type { Metrics } from "../observe/metrics.js";
import { tracing } from "../store/spans.js";
import { Answer, beginStream, EventStream, sendAnswer } from "./answer.js";
import type { Authenticator } from "./auth.js";
import { awaitsContinue, type Bodies, discardRest } from "./body.js";
import { beginWork, canBeAnswered, endWork, itsTurn, markEnding } from "./connection-state.js";
import { type Action, noPrincipal, type Principal } from "./names.js";
import { notApplied, Problem, type ProblemCode, sendProblem } from "./problems.js";
import { hostFault, type NamedPath, RequestContext, readTarget, tooManyHeaders } from "./request.js";
import { noRoom, type Sending } from "./sending.js";

/** What the gateway gives to those who answer its requests. */
export interface Serving {
  /** Fails before the gateway is open. */
  readonly store: FencedStore;
  readonly authenticator: Authenticator;
  readonly rateLimit: RateLimit;
  readonly bodies: Bodies;
  readonly sending: Sending;
  readonly bodyLimitBytes: number;
  readonly maxRequests: number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly refusals: RefusalRing;
  /** The OpenAPI document as text. */
  readonly description: string;
}

type Result = Answer | EventStream | Problem;
export type Handler = (context: RequestContext, serving: Serving) => Result | Promise<Result>;

export interface Route {
  /** In metrics and log. */
  readonly name: string;
  /** As the description has it, for spans; undefined for what has no route. */
  readonly path?: string | undefined;
  /** What the caller must be allowed to do with the resource that stands in the path. */
  readonly needs?: Action | undefined;
  /** Its parameters; undefined where it has none, and a "?" belongs to the name. */
  readonly query?: object | undefined;
  /** Answers everybody, without a credential and whatever state the gateway is in. */
  readonly isOpen?: boolean | undefined;
  readonly handler: Handler;
}

/** As many as connections: a client with one open connection is not refused for the number of others. */
export const MAX_REQUESTS = 10_000;

export class Dispatcher {
  readonly #serving: Serving;
  #inFlight = 0;
  #state: "open" | "closing connections" | "refusing" = "open";
  #onIdle: (() => void) | undefined;

  constructor(serving: Serving) {
    this.#serving = serving;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** From now on each answer is the last one on its connection. */
  closeConnections(): void {
    this.#state = "closing connections";
  }

  /** Accepts nothing new from now on; resolves when everything accepted has been answered. */
  drain(): Promise<void> {
    this.#state = "refusing";
    if (this.#inFlight === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** One request, from its header to its answer. */
  async serve(route: Route, request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#inFlight += 1;
    beginWork(request);
    const context = new RequestContext(request, response);
    let result: Result;
    try {
      const known = hostFault(context) ?? (route.isOpen === true ? noPrincipal : this.#identify(context));
      const caller = known instanceof Promise ? await known : known;
      context.span = tracing.spans?.request(request, route.path);
      result = caller instanceof Problem ? caller : await this.#inTurn(route, context, caller);
    } catch (error) {
      this.#serving.log.error({ requestId: context.requestId, route: route.name, err: error }, "a route failed");
      result = new Problem("internal", "The gateway failed; the log has the reason under this request id.", { outcome: "unknown" });
    }
    try {
      this.#finish(route.name, context, result);
    } finally {
      if (result instanceof EventStream) response.once("close", () => endWork(request));
      else endWork(request);
      this.#serving.bodies.shares.give(context.principal.id, context.heldBytes);
      if (context.held !== undefined) this.#serving.sending.leave(context.held);
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#onIdle?.();
    }
  }

  /** Who is asking, or why nobody is heard. */
  #identify({ request, headers }: RequestContext): Principal | Problem | Promise<Principal | Problem> {
    if (tooManyHeaders(request)) return new Problem("headers_too_many", "The request has too many header lines.");
    if (this.#state === "refusing" || (this.#state !== "open" && !canBeAnswered(request.socket)))
      return notApplied("unavailable", "The gateway is shutting down.");
    if (this.#inFlight > this.#serving.maxRequests) return notApplied("unavailable", "Too many requests are being answered at once.");
    return this.#serving.authenticator.authenticate(headers.authorization, { headers, socket: request.socket });
  }

  #inTurn(route: Route, context: RequestContext, caller: Principal): Result | Promise<Result> {
    const turn = itsTurn(context.request);
    if (turn === undefined) return this.#answer(route, context, caller);
    return turn.then(() => {
      const { socket } = context.request;
      const isOver = socket.destroyed || (this.#state !== "open" && !canBeAnswered(socket));
      return isOver
        ? notApplied("unavailable", "The connection ended before this request was begun.")
        : this.#answer(route, context, caller);
    });
  }

  #answer(route: Route, context: RequestContext, caller: Principal): Result | Promise<Result> {
    context.principal = caller;
    const tooOften = this.#serving.rateLimit.take(caller.id);
    if (tooOften !== undefined) return tooOften;
    const refused = namesResource(route) ? readTarget(context, route) : undefined;
    if (refused !== undefined) return refused;
    const { handler } = route;
    return context.span === undefined ? handler(context, this.#serving) : context.span.within(() => handler(context, this.#serving));
  }

  /** The answer, or what is sent where there is no room for it: of what is done already less, and never a refusal (G3). */
  #withRoom({ request, principal, held }: RequestContext, answer: Answer): Answer | Problem {
    const { body, shorter = request.method === "GET" ? noRoom : answer } = answer;
    if (held !== undefined || body === undefined || this.#serving.sending.hasRoom(principal.id, body.length)) return answer;
    return shorter;
  }

  #finish(route: string, context: RequestContext, given: Result): void {
    const { request, response, requestId } = context;
    const { log, metrics, refusals, sending } = this.#serving;
    const result = given instanceof Answer ? this.#withRoom(context, given) : given;
    const neverToldToGoOn = awaitsContinue.has(request);
    if (this.#state !== "open") markEnding(request.socket);
    if (this.#state !== "open" || neverToldToGoOn) response.shouldKeepAlive = false;
    if (!neverToldToGoOn) discardRest(request);
    if (result instanceof Problem) sendProblem(response, result, requestId);
    else if (result instanceof EventStream) beginStream(response, result, requestId);
    else sendAnswer(response, result, requestId);
    const { held } = context;
    context.held = undefined;
    if (!(result instanceof EventStream)) sending.sent(response, context.principal.id, held);
    const outcome = result instanceof Problem ? result.code : "ok";
    const facts = result instanceof Problem ? result.facts : noFacts;
    if (result instanceof Problem) noteRefused(refusals, result, context);
    const durationMs = performance.now() - context.startedAt;
    metrics.requestDone(route, outcome, durationMs);
    const { status } = result;
    const resource = facts.resource ?? (context.resource || undefined);
    const token = facts.presentedToken ?? context.token;
    const fence = facts.currentToken;
    context.span?.end({ status, outcome, requestId, resource, token, fence });
    const level = levelOf(outcome);
    if (log.isLevelEnabled(level)) {
      const who = { requestId, route, outcome, status, principal: context.principal.id, resource, token, fence };
      const line = { ...who, durationMs: Math.round(durationMs * 100) / 100, ...traceOf(context.headers.traceparent) };
      log[level](line, outcome === "ok" ? "answered" : "refused");
    }
  }
}

function namesResource(route: Route): route is Route & NamedPath {
  return route.needs !== undefined;
}

const noFacts: Problem["facts"] = {};

/** What a write was refused for, and not how it was misspelled. */
const kept: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  "fencing_token_stale",
  "fencing_token_unissued",
  "sequence_out_of_order",
  "etag_mismatch",
  "verification_unavailable",
  "contention",
  "document_too_large",
]);

function noteRefused(ring: RefusalRing, { code, facts }: Problem, context: RequestContext): void {
  const resource = facts.resource ?? context.resource;
  if (resource === "" || !kept.has(code)) return;
  const presentedToken = facts.presentedToken ?? context.token ?? null;
  const address = context.request.socket.remoteAddress ?? "";
  const { requestId, principal } = context;
  ring.note({ resource, code, presentedToken, currentToken: facts.currentToken ?? null, caller: principal.id, address, requestId });
}

/** Since the start, in memory. Those of a flood are mostly equal, and equal ones are one row. */
export const RING_SIZE = 1_000;

/**
 * The writes that this gateway refused, for GET /v1/refused and the operator's page. The log has a
 * line for each, and the metrics count them.
 */
export class RefusalRing {
  readonly #startedAt = Date.now();
  /** By what makes two of them equal; the newest last. */
  readonly #rows = new Map<string, RefusedWrite>();
  #hasForgotten = false;
  #count = 0;

  /** How many there were since the start; the id of the last one. */
  get count(): number {
    return this.#count;
  }

  /** From then on none is missing: the start of the gateway, or the oldest that is still here. */
  get since(): number {
    const [oldest] = this.#rows.values();
    return this.#hasForgotten && oldest !== undefined ? oldest.at : this.#startedAt;
  }

  note(refused: Omit<RefusedWrite, "id" | "at" | "firstAt" | "times">): void {
    const { resource, code, presentedToken, currentToken, caller, address } = refused;
    const key = [resource, code, presentedToken, currentToken, caller, address].join("\n");
    const at = Date.now();
    const { firstAt, times } = this.#rows.get(key) ?? { firstAt: at, times: 0 };
    this.#count += 1;
    this.#rows.delete(key);
    this.#rows.set(key, { ...refused, id: this.#count, at, firstAt, times: times + 1 });
    if (this.#rows.size <= RING_SIZE) return;
    const [oldest = key] = this.#rows.keys();
    this.#rows.delete(oldest);
    this.#hasForgotten = true;
  }

  /** Newest first: at most so many of those after this id that are wanted. */
  newest(limit: number, after: number, isWanted: (row: RefusedWrite) => boolean): readonly RefusedWrite[] {
    if (after >= this.#count) return [];
    const isNew = (row: RefusedWrite): boolean => row.id > after && isWanted(row);
    return [...this.#rows.values()].reverse().filter(isNew).slice(0, limit);
  }
}

interface Bucket {
  level: number;
  filledAt: number;
}

const MAX_REMEMBERED_CALLERS = 10_000;

/**
 * A token bucket per principal, refilled by the clock, holding at most one second's worth. Does not
 * count towards authentication.
 */
export class RateLimit {
  readonly #buckets = new Map<string, Bucket>();
  readonly #perSecond: number;
  readonly #now: () => number;

  /** `now` is milliseconds on a monotonic clock. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
  }

  take(caller: string): Problem | undefined {
    if (this.#perSecond === 0) return undefined;
    const at = this.#now();
    const bucket = this.#bucket(caller, at);
    bucket.level = Math.min(this.#perSecond, bucket.level + ((at - bucket.filledAt) / 1_000) * this.#perSecond);
    bucket.filledAt = at;
    if (bucket.level >= 1) {
      bucket.level -= 1;
      return undefined;
    }
    const retryAfterSeconds = Math.max(1, Math.ceil((1 - bucket.level) / this.#perSecond));
    return notApplied("rate_limited", `${caller} may send ${this.#perSecond} requests per second.`, { retryAfterSeconds });
  }

  // A forgotten caller starts with a full bucket: with more callers than are remembered the limit
  // is softer, never harder.
  #bucket(caller: string, at: number): Bucket {
    const known = this.#buckets.get(caller);
    if (known !== undefined) return known;
    if (this.#buckets.size >= MAX_REMEMBERED_CALLERS) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    const bucket = { level: this.#perSecond, filledAt: at };
    this.#buckets.set(caller, bucket);
    return bucket;
  }
}

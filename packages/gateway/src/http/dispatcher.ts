// What every request passes: header count, credential, rate and capacity before its route runs; one
// answer, one count and one log line after it. Nothing thrown here leaves a request unanswered.
import type { RequestHandler } from "express";
import { type Log, logFinished } from "../observe/log.js";
import type { Metrics } from "../observe/metrics.js";
import { tracing } from "../store/spans.js";
import { type Answer, beginStream, EventStream, Problem, sendAnswer, sendProblem } from "./answer.js";
import type { Authenticator } from "./auth.js";
import { awaitsContinue, type BodyBudget, discardRest } from "./body.js";
import { beginWork, canBeAnswered, endWork, markEnding } from "./connection-state.js";
import { noPrincipal, type Principal } from "./names.js";
import { RequestContext, readHeaders, tooManyHeaders } from "./request.js";

type Result = Answer | EventStream | Problem;
export type RouteHandler = (context: RequestContext) => Result | Promise<Result>;

/** As many as connections: a client with one open connection is not refused for the number of others. */
export const MAX_REQUESTS = 10_000;

interface Route {
  readonly name: string;
  readonly handler: RouteHandler;
}

interface DispatcherParts {
  readonly authenticator: Authenticator;
  readonly rateLimit: RateLimit;
  readonly budget: BodyBudget;
  readonly maxRequests: number;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Told of each refusal, with what is known of the request. */
  readonly onRefusal: (problem: Problem, context: RequestContext) => void;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  #inFlight = 0;
  #state: "open" | "closing connections" | "refusing" = "open";
  #onIdle: (() => void) | undefined;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
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

  /** For routes that need a credential. */
  authenticated(name: string, handler: RouteHandler): RequestHandler {
    const route = { name, handler };
    return (request, response) => {
      const context = this.#begin(request, response);
      const principal = this.#check(context);
      if (principal instanceof Promise) return principal.then((known) => this.#handle(route, context, known));
      return this.#handle(route, context, principal);
    };
  }

  /** For answers that depend on no credential. */
  anonymous(name: string, handler: RouteHandler): RequestHandler {
    const route = { name, handler };
    return (request, response) => this.#handle(route, this.#begin(request, response), noPrincipal);
  }

  #begin(request: RequestContext["request"], response: RequestContext["response"]): RequestContext {
    const headers = readHeaders(request.rawHeaders);
    this.#inFlight += 1;
    beginWork(request.socket);
    return new RequestContext(request, response, headers);
  }

  #check(context: RequestContext): Principal | Problem | Promise<Principal | Problem> {
    const { request, headers } = context;
    if (tooManyHeaders(request)) return new Problem("headers_too_many", "The request has too many header lines.");
    if (this.#state === "refusing" || (this.#state !== "open" && !canBeAnswered(request.socket)))
      return busy("The gateway is shutting down.");
    if (this.#inFlight > this.#parts.maxRequests) return busy("Too many requests are being answered at once.");
    return this.#parts.authenticator.authenticate(headers.authorization, { headers, socket: request.socket });
  }

  async #handle(route: Route, context: RequestContext, principal: Principal | Problem): Promise<void> {
    let result: Result;
    context.span = tracing.spans?.request(context.request, route.name);
    try {
      if (!(principal instanceof Problem)) context.principal = principal;
      result = principal instanceof Problem ? principal : (this.#parts.rateLimit.take(principal.id) ?? (await run(route, context)));
    } catch (error) {
      this.#parts.log.error({ requestId: context.requestId, route: route.name, err: error }, "a route failed");
      result = new Problem("internal", "The gateway failed; the log has the reason under this request id.", { outcome: "unknown" });
    }
    this.#finish(route.name, context, result);
  }

  #finish(route: string, context: RequestContext, result: Result): void {
    const { request, response } = context;
    const neverToldToGoOn = awaitsContinue.has(request);
    if (this.#state !== "open") markEnding(request.socket);
    if (this.#state !== "open" || neverToldToGoOn) response.shouldKeepAlive = false;
    if (!neverToldToGoOn) discardRest(request);
    if (result instanceof Problem) {
      sendProblem(response, result, context.requestId);
      this.#parts.onRefusal(result, context);
    } else if (result instanceof EventStream) beginStream(response, result, context.requestId);
    else sendAnswer(response, result, context.requestId);
    endWork(request.socket);
    this.#parts.budget.give(context.heldBytes);
    const outcome = result instanceof Problem ? result.code : "ok";
    const facts = result instanceof Problem ? result.facts : {};
    const durationMs = performance.now() - context.startedAt;
    this.#parts.metrics.requestDone(route, outcome, durationMs);
    if (context.span !== undefined) endSpan(context, outcome, result);
    logFinished(this.#parts.log, { request: context, route, outcome, status: result.status, durationMs, facts });
    this.#inFlight -= 1;
    if (this.#inFlight === 0) this.#onIdle?.();
  }
}

function run({ handler }: Route, context: RequestContext): Result | Promise<Result> {
  return context.span === undefined ? handler(context) : context.span.within(() => handler(context));
}

function endSpan({ span, requestId, resource, token }: RequestContext, outcome: string, result: Result): void {
  const fence = result instanceof Problem ? result.facts.currentToken : undefined;
  span?.end({ status: result.status, outcome, requestId, resource, token, fence });
}

function busy(detail: string): Problem {
  return new Problem("unavailable", detail, { outcome: "not_applied", retryAfterSeconds: 1 });
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
    const waitSeconds = Math.max(1, Math.ceil((1 - bucket.level) / this.#perSecond));
    return new Problem("rate_limited", `${caller} may send ${this.#perSecond} requests per second.`, {
      retryAfterSeconds: waitSeconds,
      outcome: "not_applied",
    });
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

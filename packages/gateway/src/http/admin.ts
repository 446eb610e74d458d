// The admin port: liveness, readiness, metrics. These need no credential, so they tell nothing of
// resources or callers, and however many ask, they take little from those who read and write. The
// operator's page, where it is switched on, stands beside them: all but its files needs a credential
// with an observe scope, and what is about one resource needs the scopes of its route for it.
import {
  type Caller,
  type FenceView,
  type HistoryView,
  OperatorPage,
  type PageRoute,
  pageFiles,
  type Trouble,
  type WatchedLock,
} from "@palisade/page";
import express, { type Express } from "express";
import type { FencedStore, Readiness } from "../fenced-store.js";
import { Answer, EventStream, success } from "./answer.js";
import { readJson } from "./body.js";
import { beginWork, endWork } from "./connection-state.js";
import type { Dispatcher, Handler, Serving } from "./dispatcher.js";
import { allows, authorize, checkResourceName } from "./names.js";
import { Problem, sendProblem, statusOf } from "./problems.js";
import { hostFault, parseQuery, pathOf, RequestContext } from "./request.js";

/** Probes come every second or so; this is the least time between two answers of a route. */
const MIN_INTERVAL_MS = 250;
/** Open connections of the admin port; for a further one, one that asks nothing is closed. */
export const MAX_ADMIN_CONNECTIONS = 256;

export function createAdminApp(asked: { readonly ready: () => Promise<Readiness>; readonly metrics: () => Promise<string> }): Express {
  const ready = new SharedAnswer(asked.ready);
  const metrics = new SharedAnswer(asked.metrics);
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.use(["/live", "/ready", "/metrics", "/page"], (request, response, next) => {
    const context = new RequestContext(request, response);
    const fault = hostFault(context);
    if (fault !== undefined) return sendProblem(response, fault, context.requestId);
    beginWork(request);
    response.once("close", () => endWork(request));
    next();
  });
  // A probe comes seldom, and its connection would count for more than a minute.
  app.use(["/live", "/ready", "/metrics"], (_request, response, next) => {
    response.shouldKeepAlive = false;
    next();
  });
  app.get("/live", (_request, response) => response.json({ live: true }));
  app.get("/ready", async (_request, response) => {
    const readiness = await ready.get();
    response.status(readiness.ready ? success.ok : statusOf("unavailable")).json(readiness);
  });
  app.get("/metrics", async (_request, response) => {
    response.type("text/plain; version=0.0.4").send(await metrics.get());
  });
  return app;
}

/**
 * One result for all who ask while it is awaited, and at most one in each interval. It is never
 * older than the question: who asks too soon after the last one waits for the next.
 */
class SharedAnswer<T> {
  readonly #make: () => T | Promise<T>;
  #madeAt = Number.NEGATIVE_INFINITY;
  #last: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(make: () => T | Promise<T>) {
    this.#make = make;
  }

  get(): Promise<T> {
    this.#next ??= this.#whenDue();
    return this.#next;
  }

  async #whenDue(): Promise<T> {
    await this.#last?.catch(() => {}); // Whoever asked for it hears of its failure.
    const waitMs = this.#madeAt + MIN_INTERVAL_MS - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#last = this.#next;
    this.#next = undefined;
    this.#madeAt = performance.now();
    return this.#make();
  }
}

// The operator's page.

const unreachable: Trouble = { trouble: "The database does not answer." };

interface MountedOn {
  readonly app: Express;
  readonly dispatcher: Dispatcher;
  readonly serving: Serving;
  /** Undefined where the gateway does not know the lock's nodes. */
  readonly lock: WatchedLock | undefined;
  readonly ready: () => Promise<Readiness>;
}

export function mountPage({ app, dispatcher, serving, lock, ready }: MountedOn): OperatorPage {
  const { metrics, refusals, log, store } = serving;
  const page = new OperatorPage({
    lock,
    refusals,
    writeTotals: () => metrics.writeTotals(),
    failedChecks: async () => (await ready()).checks.filter(({ status }) => status === "failed"),
    fence: (resource) => fenceOf(store, resource),
    history: (resource, limit) => historyOf(store, resource, limit),
    raiseFence: (change) => raised(store, change),
    wasToBeTakenAway: (order, { id, requestId }) => log.warn({ requestId, principal: id, ...order }, "a lock was to be taken away"),
  });
  // The page's own addresses are relative, so that it may stand below any path.
  app.get(/^\/page$/, (_request, response) => response.redirect(308, "page/"));
  for (const { path, headers, text } of pageFiles) app.get(`/page/${path}`, (_request, response) => response.set(headers).send(text));
  for (const route of page.routes) {
    const mounted = { name: `page_${route.path.replaceAll("-", "_")}`, handler: handlerOf(route) };
    app[route.method](`/page/${route.path}`, (request, response) => dispatcher.serve(mounted, request, response));
  }
  return page;
}

function handlerOf(route: PageRoute): Handler {
  return async (context, { authenticator, bodies }) => {
    const { principal } = context;
    if (!principal.scopes.some(({ action }) => action === "observe"))
      return new Problem("forbidden_scope", `The credential ${principal.id} has no observe scope.`);
    const input =
      route.method === "get" ? parseQuery(pathOf(context.request), route.schema) : await readJson(context, route.schema, bodies);
    if (input instanceof Problem) return input;
    const resource = route.about?.(input);
    context.resource = resource ?? "";
    for (const action of route.needs ?? []) {
      const forbidden = authorize(principal, action, context.resource);
      if (forbidden !== undefined) return forbidden;
    }
    const answer = await route.answer(input, callerOf(context, authenticator));
    if ("stream" in answer) return new EventStream(answer.stream);
    if ("json" in answer) return new Answer(success.ok, JSON.stringify(answer.json), { headers: ["X-Content-Type-Options", "nosniff"] });
    const { unavailable, retryAfterSeconds } = answer;
    return new Problem("unavailable", unavailable, { resource, retryAfterSeconds });
  };
}

function callerOf({ request, headers, principal, requestId }: RequestContext, authenticator: Serving["authenticator"]): Caller {
  return {
    id: principal.id,
    requestId,
    may: (action, resource) => allows(principal, action, resource),
    isStillAllowed: async () => {
      const known = await authenticator.authenticate(headers.authorization, { headers, socket: request.socket });
      return !(known instanceof Problem) && known.id === principal.id && JSON.stringify(known.scopes) === JSON.stringify(principal.scopes);
    },
  };
}

/** The lock takes names that the store does not; those have neither fence nor history. */
function isOfStore(resource: string): boolean {
  return !(checkResourceName(resource) instanceof Problem);
}

async function fenceOf(store: FencedStore, resource: string): Promise<FenceView | Trouble | undefined> {
  if (!isOfStore(resource)) return undefined;
  const [result, moved] = await Promise.all([store.read(resource), store.lastMove(resource)]);
  if (result.kind === "unknown_resource") return undefined;
  if (result.kind === "unavailable" || (moved !== undefined && "kind" in moved)) return unreachable;
  const { token, rev, holder, updatedAt, kind } = result;
  const move = moved && { ...moved, at: moved.at.getTime() };
  return { token, rev, holder, updatedAt: updatedAt.getTime(), hasDocument: kind !== "absent", moved: move };
}

async function historyOf(store: FencedStore, resource: string, limit: number): Promise<HistoryView | Trouble | undefined> {
  if (!isOfStore(resource)) return undefined;
  const [result, tokens] = await Promise.all([store.history({ resource, limit }), store.tokenWrites(resource)]);
  if (result.kind === "off") return undefined;
  if (result.kind === "unavailable" || "kind" in tokens) return unreachable;
  return {
    rows: result.entries.map(({ rev, op, token, holder, at }) => ({ rev, op, token, holder, at: at.getTime() })),
    tokens: tokens.map(({ token, writes, firstAt, lastAt }) => ({ token, writes, firstAt: firstAt.getTime(), lastAt: lastAt.getTime() })),
  };
}

async function raised(store: FencedStore, change: Parameters<FencedStore["raiseFence"]>[0]): Promise<true | string> {
  if (!isOfStore(change.resource)) return "the store has no resource of such a name";
  const verdict = await store.raiseFence(change);
  if (verdict.kind === "changed" || verdict.kind === "unchanged") return true;
  if (verdict.kind === "contention") return "another transaction held the row";
  if (verdict.kind === "outcome_unknown") return "the database did not say whether it was done";
  return "the database cannot be written to";
}

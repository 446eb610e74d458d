// Mounts the operator's page on the admin port, and tells it what it asks of this gateway. All but
// the page's files needs a credential with an observe scope, and what is about one resource needs the
// scopes of its route for that resource.
import {
  type Caller,
  type FenceView,
  type HistoryRow,
  OperatorPage,
  type PageRoute,
  pageFiles,
  type Trouble,
  type WatchedLock,
} from "@palisade/page";
import type { Express } from "express";
import type { FencedStore } from "../fenced-store.js";
import type { Log } from "../observe/log.js";
import type { Metrics } from "../observe/metrics.js";
import type { RefusalRing } from "../observe/refusals.js";
import { Answer, EventStream, Problem, success } from "./answer.js";
import type { Authenticator } from "./auth.js";
import { type BodyBudget, readJson } from "./body.js";
import type { Dispatcher, RouteHandler } from "./dispatcher.js";
import { allows, authorize, checkResourceName } from "./names.js";
import { parseQuery, pathOf, type RequestContext } from "./request.js";

interface MountedOn {
  readonly dispatcher: Dispatcher;
  readonly authenticator: Authenticator;
  readonly budget: BodyBudget;
  readonly metrics: Metrics;
  readonly refusals: RefusalRing;
  readonly log: Log;
  readonly store: FencedStore;
  /** Undefined where the gateway does not know the lock's nodes. */
  readonly lock: WatchedLock | undefined;
}

const MAX_BODY_BYTES = 16 * 1024;
const unreachable: Trouble = { trouble: "The database does not answer." };

export function mountPage(app: Express, gateway: MountedOn): OperatorPage {
  const { dispatcher, metrics, refusals, log, store, lock } = gateway;
  const page = new OperatorPage({
    lock,
    refusals,
    writeTotals: () => metrics.writeTotals(),
    fence: (resource) => fenceOf(store, resource),
    history: (resource, limit) => historyOf(store, resource, limit),
    raiseFence: (change) => raised(store, change),
    wasToBeTakenAway: (order, { id, requestId }) => log.warn({ requestId, principal: id, ...order }, "a lock was to be taken away"),
  });
  // The page's own addresses are relative, so that it may stand below any path.
  app.get(/^\/page$/, (_request, response) => response.redirect(308, "page/"));
  for (const { path, headers, text } of pageFiles) app.get(`/page/${path}`, (_request, response) => response.set(headers).send(text));
  for (const route of page.routes) {
    const name = `page_${route.path.replaceAll("-", "_")}`;
    app[route.method](`/page/${route.path}`, dispatcher.authenticated(name, handlerOf(route, gateway)));
  }
  return page;
}

function handlerOf(route: PageRoute, { authenticator, budget }: MountedOn): RouteHandler {
  return async (context) => {
    const { principal } = context;
    if (!principal.scopes.some(({ action }) => action === "observe"))
      return new Problem("forbidden_scope", `The credential ${principal.id} has no observe scope.`);
    const input =
      route.method === "get"
        ? parseQuery(pathOf(context.request.url ?? "/"), route.schema)
        : await readJson(context, route.schema, { limitBytes: MAX_BODY_BYTES, budget });
    if (input instanceof Problem) return input;
    const resource = route.about?.(input);
    context.resource = resource;
    for (const action of route.needs ?? []) {
      const forbidden = authorize(principal, action, resource ?? "");
      if (forbidden !== undefined) return forbidden;
    }
    const answer = await route.answer(input, callerOf(context, authenticator));
    if ("stream" in answer) return new EventStream(answer.stream);
    if ("json" in answer) return new Answer(success.ok, JSON.stringify(answer.json), { headers: ["X-Content-Type-Options", "nosniff"] });
    const { unavailable, retryAfterSeconds } = answer;
    return new Problem("unavailable", unavailable, resource === undefined ? { retryAfterSeconds } : { resource, retryAfterSeconds });
  };
}

function callerOf({ request, headers, principal, requestId }: RequestContext, authenticator: Authenticator): Caller {
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
  const result = await store.read(resource);
  if (result.kind === "unknown_resource") return undefined;
  if (result.kind === "unavailable") return unreachable;
  const { token, rev, holder, updatedAt, kind } = result;
  return { token, rev, holder, updatedAt: updatedAt.getTime(), hasDocument: kind === "found" };
}

async function historyOf(store: FencedStore, resource: string, limit: number): Promise<readonly HistoryRow[] | Trouble | undefined> {
  if (!isOfStore(resource)) return undefined;
  const result = await store.history({ resource, limit });
  if (result.kind === "off") return undefined;
  if (result.kind === "unavailable") return unreachable;
  return result.entries.map(({ rev, op, token, holder, at }) => ({ rev, op, token, holder, at: at.getTime() }));
}

async function raised(store: FencedStore, change: Parameters<FencedStore["raiseFence"]>[0]): Promise<true | string> {
  if (!isOfStore(change.resource)) return "the store has no resource of such a name";
  const verdict = await store.raiseFence(change);
  if (verdict.kind === "changed" || verdict.kind === "unchanged") return true;
  if (verdict.kind === "contention") return "another transaction held the row";
  if (verdict.kind === "outcome_unknown") return "the database did not say whether it was done";
  return "the database cannot be written to";
}

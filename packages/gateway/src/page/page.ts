// The operator's page of one gateway: its files, what it asks, and the one thing it can do. All but
// the files needs a credential with an observe scope; taking a lock away needs an admin scope too.
import type { Express, Response } from "express";
import { z } from "zod";
import { MAX_NAME_BYTES } from "../fence/write-request.js";
import type { FencedStore } from "../fenced-store.js";
import { Answer, EventStream, unavailableProblem } from "../http/answer.js";
import { type Authenticator, authorize } from "../http/auth.js";
import { type BodyBudget, mediaTypeFault, readBody } from "../http/body.js";
import type { Dispatcher, RouteHandler } from "../http/dispatcher.js";
import { jsonFault } from "../http/json-text.js";
import { Problem, success } from "../http/problem.js";
import { parseQuery } from "../http/query.js";
import type { RequestContext } from "../http/request-context.js";
import type { RefusalListener } from "../http/routes/refusals.js";
import { pathOf } from "../http/routes/target.js";
import { firstIssue } from "../http/schemas.js";
import { allows, type Principal } from "../http/scopes.js";
import type { Log } from "../observe/log.js";
import type { Metrics } from "../observe/metrics.js";
import { version } from "../version.generated.js";
import { files } from "./bundle.generated.js";
import { releaseOrder, takeAway } from "./force-release.js";
import { leasePage } from "./lease-page.js";
import { Live } from "./live.js";
import { LockWatch, type WatchedLock } from "./lock-watch.js";
import { RefusalRing } from "./refusal-ring.js";
import { viewOf } from "./resource-view.js";
import { WriteRates } from "./write-rates.js";

interface PageParts {
  readonly dispatcher: Dispatcher;
  readonly authenticator: Authenticator;
  readonly budget: BodyBudget;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly store: () => FencedStore;
  /** Absent where the gateway does not know the lock's nodes. */
  readonly lock: () => WatchedLock | undefined;
  readonly keepsHistory: boolean;
  readonly keepsRefusals: boolean;
}

const MAX_BODY_BYTES = 16 * 1024;
const count = z
  .string()
  .regex(/^[0-9]{1,6}$/)
  .transform(Number);
const leaseQuery = z.strictObject({
  search: z.string().max(MAX_NAME_BYTES).default(""),
  order: z.enum(["name", "ends", "held"]).default("name"),
  from: count.default(0),
  count: count.pipe(z.int().min(1).max(200)).default(100),
});
const resourceQuery = z.strictObject({ name: z.string().min(1).max(MAX_NAME_BYTES) });
const noQuery = z.strictObject({});

// No script, style or connection but its own, and no frame around it.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

export class OperatorPage {
  readonly refusals: RefusalListener;
  readonly #parts: PageParts;
  readonly #ring = new RefusalRing();
  readonly #rates: WriteRates;
  #open: { readonly live: Live; readonly watch: LockWatch | undefined } | undefined;

  constructor(parts: PageParts) {
    this.#parts = parts;
    this.refusals = this.#ring;
    this.#rates = new WriteRates(() => parts.metrics.writeTotals());
  }

  /** Once the store and the lock are there. */
  addTo(app: Express): void {
    const { dispatcher, lock } = this.#parts;
    const known = lock();
    const watch = known === undefined ? undefined : new LockWatch(known);
    const open = { live: new Live({ ring: this.#ring, rates: this.#rates, lock: watch }), watch };
    this.#open = open;
    for (const [name, file] of Object.entries(files)) {
      // The page's own addresses are relative, so that it may stand below any path.
      if (name === "") app.get(/^\/page$/, (_request, response) => response.redirect(308, "page/"));
      app.get(`/page/${name}`, (_request, response) => sendFile(response, file));
    }
    app.get("/page/live", dispatcher.authenticated("page_live", this.#live(open.live)));
    app.get("/page/leases", dispatcher.authenticated("page_leases", this.#leases(watch)));
    app.get("/page/resource", dispatcher.authenticated("page_resource", this.#resource(watch)));
    app.post("/page/force-release", dispatcher.authenticated("page_force_release", this.#forceRelease(watch)));
  }

  close(): void {
    this.#open?.live.close();
    this.#open?.watch?.close();
  }

  #live(live: Live): RouteHandler {
    const { keepsHistory, keepsRefusals } = this.#parts;
    return (context) => {
      const query = askedBy(context, noQuery);
      if (query instanceof Problem) return query;
      if (live.isFull)
        return unavailableProblem({ kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 5_000 });
      const { principal } = context;
      const isAllowed = () => this.#mayStillObserve(context);
      const hello = { version, keepsHistory, keepsRefusals };
      return new EventStream((response) => live.begin({ principal, response, isAllowed, hello }));
    };
  }

  async #mayStillObserve({ request, headers, principal }: RequestContext): Promise<boolean> {
    const known = await this.#parts.authenticator.authenticate(headers.authorization, { headers, socket: request.socket });
    return !(known instanceof Problem) && known.id === principal.id && JSON.stringify(known.scopes) === JSON.stringify(principal.scopes);
  }

  #leases(watch: LockWatch | undefined): RouteHandler {
    const { lock } = this.#parts;
    return async (context) => {
      const query = askedBy(context, leaseQuery);
      if (query instanceof Problem) return query;
      const known = lock();
      if (known === undefined) return new Problem("not_found", "This gateway does not know the lock's nodes.");
      watch?.watched();
      return answerOf(await leasePage({ look: watch?.leases, lock: known }, context.principal, query));
    };
  }

  #resource(watch: LockWatch | undefined): RouteHandler {
    const { store, lock } = this.#parts;
    return async (context) => {
      const query = askedBy(context, resourceQuery);
      if (query instanceof Problem) return query;
      const { name } = query;
      const forbidden = authorize(context.principal, "observe", name);
      if (forbidden !== undefined) return forbidden;
      context.resource = name;
      const mayRelease = lock() !== undefined && allows(context.principal, "admin", name);
      return answerOf(await viewOf({ store: store(), lock: lock(), watch, ring: this.#ring }, name, mayRelease));
    };
  }

  #forceRelease(watch: LockWatch | undefined): RouteHandler {
    const { store, lock, budget, log } = this.#parts;
    return async (context) => {
      const known = lock();
      if (known === undefined) return new Problem("not_found", "This gateway does not know the lock's nodes.");
      const order = await orderIn(context, budget);
      if (order instanceof Problem) return order;
      const { resource } = order;
      context.resource = resource;
      const forbidden = authorize(context.principal, "observe", resource) ?? authorize(context.principal, "admin", resource);
      if (forbidden !== undefined) return forbidden;
      const done = await takeAway(known, store(), { ...order, by: context.principal.id });
      log.warn({ requestId: context.requestId, principal: context.principal.id, ...order, done }, "a lock was to be taken away");
      watch?.lookAgain();
      return done instanceof Problem ? done : answerOf(done);
    };
  }
}

/** The query, where the caller may see anything at all. */
function askedBy<S extends z.ZodType>(context: RequestContext, schema: S): z.output<S> | Problem {
  return mayObserve(context.principal) ?? parseQuery(pathOf(context.request.url ?? "/"), schema);
}

function mayObserve({ id, scopes }: Principal): Problem | undefined {
  if (scopes.some(({ action }) => action === "observe")) return undefined;
  return new Problem("forbidden_scope", `The credential ${id} has no observe scope.`);
}

async function orderIn(context: RequestContext, budget: BodyBudget) {
  const fault = mayObserve(context.principal) ?? mediaTypeFault(context.headers, "document");
  if (fault !== undefined) return fault;
  const text = await readBody(context, MAX_BODY_BYTES, budget);
  if (text instanceof Problem) return text;
  const unreadable = jsonFault(text, MAX_BODY_BYTES);
  if (unreadable !== undefined) return unreadable;
  const parsed = releaseOrder.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : new Problem("json_invalid", firstIssue(parsed.error));
}

function answerOf(body: object): Answer {
  return new Answer(success.ok, JSON.stringify(body), { headers: ["X-Content-Type-Options", "nosniff"] });
}

function sendFile(response: Response, { type, text }: (typeof files)[string]): void {
  response.set({
    "Content-Type": type,
    "Cache-Control": "no-cache",
    "Content-Security-Policy": policy,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
  });
  response.send(text);
}

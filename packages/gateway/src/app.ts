// The Express application: which route answers which method and path. Paths are regular expressions
// without groups, so that Express neither decodes nor folds them: names are parsed from the raw
// target, once.
import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { Answer, Problem, success } from "./http/answer.js";
import type { Dispatcher, RouteHandler } from "./http/dispatcher.js";
import { allowed, isSeal } from "./http/request.js";
import { fenceRoute, historyRoute, listRoute, readRoute } from "./http/routes/read.js";
import { fenceChangeRoute, refusedRoute } from "./http/routes/reports.js";
import { transactionRoute } from "./http/routes/transaction.js";
import { deleteRoute, patchRoute, putRoute, sealRoute, type WriteParts } from "./http/routes/write.js";
import type { RefusalRing } from "./observe/refusals.js";

interface AppParts extends WriteParts {
  readonly refusals: RefusalRing;
  readonly dispatcher: Dispatcher;
  /** The OpenAPI document as text. */
  readonly description: string;
}

export function createApp(parts: AppParts): Express {
  const { dispatcher } = parts;
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.disable("query parser");

  const otherMethods = (allow: string) => dispatcher.anonymous("other", otherMethod(allow));
  app
    .route(/^\/v1\/resources\//)
    .put(dispatcher.authenticated("put", putRoute(parts)))
    .get(dispatcher.authenticated("get", readRoute(parts)))
    .patch(dispatcher.authenticated("patch", patchRoute(parts)))
    .delete(dispatcher.authenticated("delete", deleteRoute(parts)))
    .post(dispatcher.authenticated("seal", sealRoute(parts, otherMethodOfResource)))
    .all(dispatcher.anonymous("other", otherMethodOfResource));
  app
    .route(/^\/v1\/resources$/)
    .get(dispatcher.authenticated("list", listRoute(parts)))
    .all(otherMethods(allowed.read));
  app
    .route(/^\/v1\/transactions$/)
    .post(dispatcher.authenticated("transaction", transactionRoute(parts)))
    .all(otherMethods(allowed.transaction));
  addReports(app, parts, otherMethods);
  const description = new Answer(success.ok, parts.description);
  app
    .route(/^\/openapi\.json$/)
    .get(dispatcher.anonymous("openapi", () => description))
    .all(otherMethods(allowed.read));
  app.use(
    dispatcher.anonymous("other", () => new Problem("route_not_found", "There is no such route; /openapi.json lists those there are.")),
  );
  // biome-ignore lint/complexity/useMaxParams: Express knows an error handler by its four parameters.
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    dispatcher.anonymous("other", () => {
      throw error;
    })(request, response, next);
  });
  return app;
}

/** POST raises a fence, and is answered only under the name of a seal. */
const otherMethodOfResource: RouteHandler = (context) => {
  const answer = otherMethod(isSeal(context) ? allowed.seal : allowed.resource)(context);
  if (context.request.method !== "POST") return answer;
  const detail = `POST /v1/resources/{name}/seal raises the fence; the methods of this path are ${allowed.resource}.`;
  return new Problem("method_not_allowed", detail, { allow: allowed.resource });
};

/** What was written, what was refused, and the fences. */
function addReports(app: Express, parts: AppParts, otherMethods: (allow: string) => RequestHandler): void {
  const { dispatcher } = parts;
  app
    .route(/^\/v1\/history\//)
    .get(dispatcher.authenticated("history", historyRoute(parts)))
    .all(otherMethods(allowed.read));
  app
    .route(/^\/v1\/refused$/)
    .get(dispatcher.authenticated("refused", refusedRoute(parts)))
    .all(otherMethods(allowed.read));
  app
    .route(/^\/v1\/fences\//)
    .get(dispatcher.authenticated("fence", fenceRoute(parts)))
    .post(dispatcher.authenticated("fence_change", fenceChangeRoute(parts)))
    .all(otherMethods(allowed.fence));
}

function otherMethod(allow: string): RouteHandler {
  const options = new Answer(success.noContent, undefined, { headers: ["Allow", allow] });
  return ({ request }) =>
    request.method === "OPTIONS" ? options : new Problem("method_not_allowed", `The methods of this route are ${allow}.`, { allow });
}

// The Express application: which route answers which method and path. Paths are regular expressions
// without groups, so that Express neither decodes nor folds them: names are parsed from the raw
// target, once.
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import type { Admission, RouteHandler } from "./http/admission.js";
import { Answer } from "./http/answer.js";
import { allowed } from "./http/paths.js";
import { Problem, success } from "./http/problem.js";
import { fenceChangeRoute } from "./http/routes/fence-change.js";
import { fenceRoute, historyRoute, listRoute, readRoute } from "./http/routes/read.js";
import { transactionRoute } from "./http/routes/transaction.js";
import { deleteRoute, patchRoute, putRoute, sealRoute, type WriteParts } from "./http/routes/write.js";

export interface AppParts extends WriteParts {
  readonly admission: Admission;
  /** The OpenAPI document as text. */
  readonly description: string;
}

export function createApp(parts: AppParts): Express {
  const { admission } = parts;
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.disable("query parser");

  const otherMethods = (allow: string) => admission.open("other", otherMethod(allow));
  app
    .route(/^\/v1\/resources\//)
    .put(admission.guarded("put", putRoute(parts)))
    .get(admission.guarded("get", readRoute(parts)))
    .patch(admission.guarded("patch", patchRoute(parts)))
    .delete(admission.guarded("delete", deleteRoute(parts)))
    .post(admission.guarded("seal", sealRoute(parts, otherMethod(allowed.resource))))
    .all(otherMethods(allowed.resource));
  app
    .route(/^\/v1\/resources$/)
    .get(admission.guarded("list", listRoute(parts)))
    .all(otherMethods(allowed.read));
  app
    .route(/^\/v1\/transactions$/)
    .post(admission.guarded("transaction", transactionRoute(parts)))
    .all(otherMethods(allowed.transaction));
  app
    .route(/^\/v1\/history\//)
    .get(admission.guarded("history", historyRoute(parts)))
    .all(otherMethods(allowed.read));
  app
    .route(/^\/v1\/fences\//)
    .get(admission.guarded("fence", fenceRoute(parts)))
    .post(admission.guarded("fence_change", fenceChangeRoute(parts)))
    .all(otherMethods(allowed.fence));
  const description = new Answer(success.ok, parts.description);
  app
    .route(/^\/openapi\.json$/)
    .get(admission.open("openapi", () => description))
    .all(otherMethods(allowed.read));
  app.use(admission.open("other", () => new Problem("route_not_found", "There is no such route; /openapi.json lists those there are.")));
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    admission.open("other", () => {
      throw error;
    })(request, response, next);
  });
  return app;
}

function otherMethod(allow: string): RouteHandler {
  const options = new Answer(success.noContent, undefined, { headers: ["Allow", allow] });
  return ({ request }) =>
    request.method === "OPTIONS" ? options : new Problem("method_not_allowed", `The methods of this route are ${allow}.`, { allow });
}

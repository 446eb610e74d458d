// The table of routes: what is asked for by which method and path, what the caller must be allowed to
// do, who answers, and what the OpenAPI document says of it. The router, the Allow header, the names
// in metrics, log and spans, and the document (openapi.ts) are made of it.
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { z } from "zod";
import { Answer, success } from "./answer.js";
import { mediaTypes } from "./body.js";
import type { Dispatcher, Handler, Route } from "./dispatcher.js";
import { Problem, type ProblemCode } from "./problems.js";
import { listRefused, listResources, readDocument, readFence, readHistory } from "./reads.js";
import { pathOf } from "./request.js";
import * as schemas from "./schemas.js";
import { changeFence, deleteDocument, patchDocument, putDocument, seal, transact } from "./writes.js";

export interface Operation extends Route {
  readonly method: "GET" | "PUT" | "PATCH" | "DELETE" | "POST";
  readonly path: string;
  /** The operationId, which generated clients call it by. */
  readonly id: string;
  readonly tag: "resources" | "transactions" | "history" | "fences" | "description";
  readonly summary: string;
  /** The header fields that it reads, by their names among the parameters of the document. */
  readonly headers?: readonly string[];
  readonly query?: z.ZodObject;
  readonly body?: { readonly mediaTypes: readonly string[]; readonly schema: z.ZodType };
  /** Status to the schema of its body; null where there is none. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  /** The header fields of these answers. */
  readonly answerHeaders?: readonly string[];
  /** Besides those of any route, and those that follow from its name, query and body. */
  readonly problems?: readonly ProblemCode[];
}

export const RESOURCES = "/v1/resources/{resource}";
const FENCES = "/v1/fences/{resource}";
const anyDocument = z.unknown();
const stored = ["ETag", "Fencing-Token"];
const conditional = ["FencingToken", "IfMatch", "IfNoneMatch"];
const fenced: readonly ProblemCode[] = [
  "fencing_token_malformed",
  "fencing_token_required",
  "fencing_token_unissued",
  "fencing_token_stale",
  "sequence_out_of_order",
  "contention",
  "verification_unavailable",
  "outcome_unknown",
  "precondition_unsupported",
];

export const operations: readonly Operation[] = [
  {
    method: "PUT",
    path: RESOURCES,
    name: "put",
    id: "putResource",
    tag: "resources",
    summary: "Store a document",
    needs: "write",
    handler: putDocument,
    headers: conditional,
    body: { mediaTypes: mediaTypes.document, schema: anyDocument },
    answers: { 200: schemas.writeReceipt, 201: schemas.writeReceipt },
    answerHeaders: stored,
    problems: [...fenced, "etag_mismatch"],
  },
  {
    method: "PATCH",
    path: RESOURCES,
    name: "patch",
    id: "patchResource",
    tag: "resources",
    summary: "Change a document by a JSON merge patch (RFC 7396)",
    needs: "write",
    handler: patchDocument,
    headers: conditional,
    body: { mediaTypes: mediaTypes.merge_patch, schema: anyDocument },
    answers: { 200: schemas.patchReceipt },
    answerHeaders: stored,
    problems: [...fenced, "etag_mismatch", "not_found"],
  },
  {
    method: "DELETE",
    path: RESOURCES,
    name: "delete",
    id: "deleteResource",
    tag: "resources",
    summary: "Remove the document; the fence stays",
    needs: "write",
    handler: deleteDocument,
    headers: conditional,
    answers: { 204: null },
    answerHeaders: stored,
    problems: [...fenced, "etag_mismatch", "not_found"],
  },
  {
    method: "GET",
    path: RESOURCES,
    name: "get",
    id: "getResource",
    tag: "resources",
    summary: "Read the document",
    needs: "read",
    handler: readDocument,
    headers: ["ReadIfNoneMatch"],
    answers: { 200: anyDocument, 304: null },
    answerHeaders: stored,
    problems: ["precondition_unsupported", "not_found"],
  },
  {
    method: "POST",
    path: "/v1/resources/{resource}/seal",
    name: "seal",
    id: "sealResource",
    tag: "resources",
    summary: "Raise the fence without a write and read the document: after it, no older holder can change what was read",
    needs: "seal",
    handler: seal,
    headers: ["FencingToken"],
    answers: { 200: schemas.sealReceipt },
    answerHeaders: stored,
    problems: [...fenced, "method_not_allowed"],
  },
  {
    method: "GET",
    path: "/v1/resources",
    name: "list",
    id: "listResources",
    tag: "resources",
    summary: "Resources by name, in pages",
    handler: listResources,
    query: schemas.listQuery,
    answers: { 200: schemas.resourcePage },
  },
  {
    method: "POST",
    path: "/v1/transactions",
    name: "transaction",
    id: "transact",
    tag: "transactions",
    summary: "Several operations on different resources, all or nothing",
    handler: transact,
    headers: ["SharedFencingToken"],
    body: { mediaTypes: mediaTypes.document, schema: schemas.transactionRequest },
    answers: { 200: schemas.transactionReceipt },
    problems: ["resource_name_invalid", ...fenced, "etag_mismatch", "not_found", "answer_too_large"],
  },
  {
    method: "GET",
    path: "/v1/history/{resource}",
    name: "history",
    id: "getHistory",
    tag: "history",
    summary: "Accepted writes of a resource, newest first, where history is kept",
    needs: "read",
    handler: readHistory,
    query: schemas.historyQuery,
    answers: { 200: schemas.historyPage },
    problems: ["not_found"],
  },
  {
    method: "GET",
    path: "/v1/refused",
    name: "refused",
    id: "listRefused",
    tag: "history",
    summary: "Writes that this gateway refused, newest first: the last 1 000 that differ, since its start",
    handler: listRefused,
    query: schemas.refusedQuery,
    answers: { 200: schemas.refusedPage },
  },
  {
    method: "GET",
    path: FENCES,
    name: "fence",
    id: "getFence",
    tag: "fences",
    summary: "The fence of a resource, its last holder, with or without a document, and who last moved it by hand",
    needs: "read",
    handler: readFence,
    answers: { 200: schemas.fenceState },
    answerHeaders: ["Fencing-Token"],
    problems: ["not_found"],
  },
  {
    method: "POST",
    path: FENCES,
    name: "fence_change",
    id: "changeFence",
    tag: "fences",
    summary: "Move a fence by hand; the credential and the reason are kept",
    needs: "admin",
    handler: changeFence,
    body: { mediaTypes: mediaTypes.document, schema: schemas.fenceChange },
    answers: { 200: schemas.fenceReceipt },
    answerHeaders: ["Fencing-Token"],
    problems: ["fence_unchanged", "contention", "outcome_unknown"],
  },
  {
    method: "GET",
    path: "/openapi.json",
    name: "openapi",
    id: "getDescription",
    tag: "description",
    summary: "This document",
    isOpen: true,
    handler: (_context, { description }) => new Answer(success.ok, description),
    answers: { 200: z.record(z.string(), z.unknown()) },
  },
];

/** With what stands before and after the name of a resource; the others have the whole path before. */
const forms = operations.map((operation) => {
  const [before = "", after] = operation.path.split("{resource}");
  return { operation, before, after };
});

/** The target is a path with its query, as it came: Express would decode and fold it. */
function fits({ before, after }: (typeof forms)[number], target: string): boolean {
  if (after !== undefined) return target.startsWith(before) && target.endsWith(after);
  return target.startsWith(before) && (target.length === before.length || target[before.length] === "?");
}

/** In the order of an Allow header; whoever answers GET answers HEAD. */
const byMethod: ReadonlyMap<string, typeof forms> = new Map(
  ["GET", "HEAD", "PUT", "PATCH", "DELETE", "POST"].map((method) => [
    method,
    forms.filter(({ operation }) => operation.method === (method === "HEAD" ? "GET" : method)),
  ]),
);

/** The Allow header of a path; empty where no route has it. */
export function allowedAt(target: string): string {
  return [...byMethod].flatMap(([method, some]) => (some.some((form) => fits(form, target)) ? [method] : [])).join(", ");
}

const unknownRoute: Route = { name: "other", isOpen: true, handler: answerUnknown };

function answerUnknown({ request }: Parameters<Handler>[0]): Answer | Problem {
  const target = pathOf(request);
  const allow = allowedAt(target);
  if (allow === "") return new Problem("route_not_found", "There is no such route; /openapi.json lists those there are.");
  if (request.method === "OPTIONS") return new Answer(success.noContent, undefined, { headers: ["Allow", allow] });
  // POST raises a fence, and is answered only under the name of a seal.
  const isPost = request.method === "POST" && allow === allowedAt(RESOURCES);
  const detail = isPost
    ? `POST /v1/resources/{name}/seal raises the fence; the methods of this path are ${allow}.`
    : `The methods of this route are ${allow}.`;
  return new Problem("method_not_allowed", detail, { allow });
}

/**
 * The Express application, to listen with or to mount elsewhere. There, what is none of its routes
 * goes on to what comes after it.
 */
export function createApp(dispatcher: Dispatcher): Express {
  const app = express();
  const mounted = new WeakSet<Request>();
  const handled = app as unknown as { handle(request: Request, response: Response, next?: NextFunction): void };
  const handle = handled.handle.bind(app);
  handled.handle = (request, response, next) => {
    if (next !== undefined) mounted.add(request); // A server that listens with it has none.
    handle(request, response, next);
  };
  app.disable("x-powered-by");
  app.disable("etag");
  app.disable("query parser");
  app.use((request: Request, response: Response, next: NextFunction) => {
    const target = pathOf(request);
    const form = byMethod.get(request.method)?.find((one) => fits(one, target));
    if (form === undefined && mounted.has(request) && allowedAt(target) === "") return next();
    return dispatcher.serve(form?.operation ?? unknownRoute, request, response);
  });
  // biome-ignore lint/complexity/useMaxParams: Express knows an error handler by its four parameters.
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const failed = (): never => {
      throw error;
    };
    return dispatcher.serve({ ...unknownRoute, handler: failed }, request, response);
  });
  return app;
}

// PUT, PATCH, DELETE and seal of one resource: from the header to a request for the store, and from
// its verdict to an answer. Everything that can be refused without the body is refused before the
// body is read.
import type { WriteOperation, WriteRequest } from "../../fence/verdict.js";
import type { Metrics } from "../../observe/metrics.js";
import { type Answer, acceptedAnswer, Problem, type Visibility, verdictProblem } from "../answer.js";
import { type BodyBudget, mediaTypeFault, readBody } from "../body.js";
import type { RouteHandler } from "../dispatcher.js";
import { jsonFault } from "../json.js";
import { allows, type Principal } from "../names.js";
import { parseFencingToken, parseWriteCondition, RESOURCE_PREFIX, type RequestContext, sealTargetOf, targetOf } from "../request.js";
import type { StoreAccess } from "./read.js";

export interface WriteParts extends StoreAccess {
  readonly metrics: Metrics;
  readonly budget: BodyBudget;
  readonly bodyLimitBytes: number;
}

export function putRoute(parts: WriteParts): RouteHandler {
  return (context) => writeDocument(parts, context, "put");
}

export function patchRoute(parts: WriteParts): RouteHandler {
  return (context) => writeDocument(parts, context, "patch");
}

export function deleteRoute(parts: WriteParts): RouteHandler {
  return (context) => {
    const intent = readIntent(context, "delete", targetOf(context, RESOURCE_PREFIX, "write"));
    return intent instanceof Problem ? intent : apply(parts, context, intent);
  };
}

export function sealRoute(parts: WriteParts, elsewhere: RouteHandler): RouteHandler {
  return (context) => {
    const target = sealTargetOf(context, RESOURCE_PREFIX);
    if (target === undefined) return elsewhere(context);
    const intent = readIntent(context, "seal", target);
    if (intent instanceof Problem) return intent;
    if (intent.expected === undefined) return apply(parts, context, intent);
    return new Problem("precondition_unsupported", "A seal changes no document, so it takes no If-Match or If-None-Match.");
  };
}

async function writeDocument(parts: WriteParts, context: RequestContext, op: "put" | "patch"): Promise<Answer | Problem> {
  const intent = readIntent(context, op, targetOf(context, RESOURCE_PREFIX, "write"));
  if (intent instanceof Problem) return intent;
  const unreadable = mediaTypeFault(context.headers, op === "put" ? "document" : "merge_patch");
  if (unreadable !== undefined) return unreadable;
  const text = await readBody(context, parts.bodyLimitBytes, parts.budget);
  if (text instanceof Problem) return text;
  return jsonFault(text, parts.bodyLimitBytes) ?? apply(parts, context, { ...intent, value: text });
}

/** What the store will be asked, but for the document. */
function readIntent(context: RequestContext, op: WriteOperation, resource: string | Problem): WriteRequest | Problem {
  if (resource instanceof Problem) return resource;
  const presented = parseFencingToken(context.headers.fencingToken);
  if (presented instanceof Problem) return presented;
  context.token = presented.token;
  const condition = parseWriteCondition(context.headers);
  if (condition instanceof Problem) return condition;
  return { op, resource, token: presented.token, seq: presented.seq, expected: condition.expected, holder: context.principal.id };
}

async function apply(parts: WriteParts, context: RequestContext, request: WriteRequest): Promise<Answer | Problem> {
  const { op, resource } = request;
  const verdict = await parts.store.write(request);
  parts.metrics.writeDone(op, verdict.kind);
  return verdict.kind === "accepted" ? acceptedAnswer(verdict, op, visibilityOf(context.principal, resource)) : verdictProblem(verdict);
}

export function visibilityOf(principal: Principal, resource: string): Visibility {
  return allows(principal, "read", resource) ? "may_read" : "must_not_read";
}

// PUT, PATCH, DELETE and seal of one resource: from the header to a request for the store, and from
// its verdict to an answer. Everything that can be refused without the body is refused before the
// body is read.
import type { WriteOperation, WriteRequest } from "../../fence/verdict.js";
import type { Metrics } from "../../observe/metrics.js";
import { type Answer, acceptedAnswer, type Visibility, verdictProblem } from "../answer.js";
import { authorize } from "../auth.js";
import { type BodyBudget, mediaTypeFault, namesJsonPatch, readBody } from "../body.js";
import type { RouteHandler } from "../dispatcher.js";
import { MAX_PATCHED_BYTES, parseJsonPatch } from "../json-patch.js";
import { jsonFault } from "../json-text.js";
import { RESOURCE_PREFIX } from "../paths.js";
import { idempotencyOf, parseFencingToken, parseIdempotencyKey, parseWriteCondition } from "../preconditions.js";
import { Problem } from "../problem.js";
import type { RequestContext } from "../request-context.js";
import { allows, type Principal } from "../scopes.js";
import { writePatched } from "./patched-write.js";
import type { StoreAccess } from "./read.js";
import { sealTargetOf, targetOf } from "./target.js";

export interface WriteParts extends StoreAccess {
  readonly metrics: Metrics;
  readonly budget: BodyBudget;
  readonly bodyLimitBytes: number;
}

export function putRoute(parts: WriteParts): RouteHandler {
  return (context) => writeDocument(parts, context, "put");
}

export function patchRoute(parts: WriteParts): RouteHandler {
  return (context) => (namesJsonPatch(context.headers) ? writeJsonPatch(parts, context) : writeDocument(parts, context, "patch"));
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

/**
 * What the store will be asked, with the Idempotency-Key as it came: its fingerprint also covers
 * the document.
 */
interface Intent extends Omit<WriteRequest, "idempotency"> {
  readonly idempotencyKey: string | undefined;
}

function readIntent(context: RequestContext, op: WriteOperation, resource: string | Problem): Intent | Problem {
  if (resource instanceof Problem) return resource;
  const presented = parseFencingToken(context.headers.fencingToken);
  if (presented instanceof Problem) return presented;
  context.token = presented.token;
  const condition = parseWriteCondition(context.headers);
  if (condition instanceof Problem) return condition;
  const idempotencyKey = parseIdempotencyKey(context.headers.idempotencyKey);
  if (idempotencyKey instanceof Problem) return idempotencyKey;
  return {
    op,
    resource,
    token: presented.token,
    seq: presented.seq ?? undefined,
    expected: condition.expected,
    holder: context.principal.id,
    // A seal may be repeated without a key.
    idempotencyKey: op === "seal" ? undefined : idempotencyKey,
  };
}

/** Answered as a PUT. `test` tells what a document says, so it takes a credential that may read. */
async function writeJsonPatch(parts: WriteParts, context: RequestContext): Promise<Answer | Problem> {
  const intent = readIntent(context, "put", targetOf(context, RESOURCE_PREFIX, "write"));
  if (intent instanceof Problem) return intent;
  const refusal = authorize(context.principal, "read", intent.resource) ?? mediaTypeFault(context.headers, "json_patch");
  if (refusal !== undefined) return refusal;
  const text = await readBody(context, parts.bodyLimitBytes, parts.budget);
  if (text instanceof Problem) return text;
  const operations = jsonFault(text, parts.bodyLimitBytes) ?? parseJsonPatch(text);
  if (operations instanceof Problem) return operations;
  const { resource, token, seq, expected, holder } = intent;
  const idempotency = idempotencyFor(context, intent, ["json patch", text]);
  const request = { resource, token, seq, expected, holder, idempotency };
  const limitBytes = Math.min(parts.bodyLimitBytes, MAX_PATCHED_BYTES);
  const verdict = await writePatched(parts, { request, operations, limitBytes });
  if (verdict instanceof Problem) {
    parts.metrics.writeDone("patch", verdict.code);
    return verdict;
  }
  parts.metrics.writeDone("patch", verdict.kind);
  return verdict.kind === "accepted" ? acceptedAnswer(verdict, "put", "must_not_read") : verdictProblem(verdict);
}

/** The last parameter is the operation and its document. */
function idempotencyFor({ principal }: RequestContext, intent: Intent, [op, value]: readonly [string, string | undefined]) {
  const { idempotencyKey, resource, token, seq, expected } = intent;
  return idempotencyKey === undefined ? undefined : idempotencyOf(principal, idempotencyKey, [op, resource, token, seq, expected, value]);
}

async function apply(parts: WriteParts, context: RequestContext, intent: Intent): Promise<Answer | Problem> {
  const { op, resource, token, seq, expected, value, holder } = intent;
  const idempotency = idempotencyFor(context, intent, [op, value]);
  const verdict = await parts.store.write({ op, resource, token, seq, expected, value, holder, idempotency });
  parts.metrics.writeDone(op, verdict.kind);
  return verdict.kind === "accepted" ? acceptedAnswer(verdict, op, visibilityOf(context.principal, resource)) : verdictProblem(verdict);
}

export function visibilityOf(principal: Principal, resource: string): Visibility {
  return allows(principal, "read", resource) ? "may_read" : "must_not_read";
}

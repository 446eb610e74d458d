// POST /v1/transactions: several resources, all or nothing. The whole transaction is refused when
// one of its operations is.
import { elementsOf, membersOf } from "../../fence/json.js";
import { MAX_OPERATIONS, type TransactionVerdict, type WriteRequest } from "../../fence/verdict.js";
import { Answer, Problem, receipt, refusalProblem, success, undecidedProblem } from "../answer.js";
import { mediaTypeFault, readBody } from "../body.js";
import type { RouteHandler } from "../dispatcher.js";
import { jsonFault } from "../json.js";
import { allows, checkResourceName, type Principal } from "../names.js";
import {
  type PresentedToken,
  parseFencingToken,
  parseIfMatch,
  parseWriteCondition,
  type RequestContext,
  type WriteCondition,
} from "../request.js";
import { firstIssue, operation as operationSchema } from "../schemas.js";
import { visibilityOf, type WriteParts } from "./write.js";

export function transactionRoute(parts: WriteParts): RouteHandler {
  return async (context) => {
    const presented = readPresented(context);
    if (presented instanceof Problem) return presented;
    const unreadable = mediaTypeFault(context.headers, "document");
    if (unreadable !== undefined) return unreadable;
    const text = await readBody(context, parts.bodyLimitBytes, parts.budget);
    if (text instanceof Problem) return text;
    const fault = jsonFault(text, parts.bodyLimitBytes);
    if (fault !== undefined) return fault;
    const operations = parseOperations(text, presented, context.principal.id);
    if (operations instanceof Problem) return operations;
    return scopeFault(context, operations) ?? apply(parts, context, operations);
  };
}

/** The token for all operations that have none of their own. */
function readPresented(context: RequestContext): PresentedToken | undefined | Problem {
  const { fencingToken } = context.headers;
  if (!context.principal.scopes.some(({ action }) => action === "write" || action === "seal")) {
    return new Problem("forbidden_scope", `The credential ${context.principal.id} has neither a write nor a seal scope.`);
  }
  const presented = fencingToken === undefined ? undefined : parseFencingToken(fencingToken);
  if (presented instanceof Problem) return presented;
  context.token = presented?.token;
  const condition = parseWriteCondition(context.headers);
  if (condition instanceof Problem) return condition;
  if (condition.expected !== undefined) {
    return new Problem(
      "precondition_unsupported",
      "A transaction has no revision of its own; put ifMatch or ifNoneMatch into its operations.",
    );
  }
  return presented;
}

function scopeFault(context: RequestContext, operations: Operations): Problem | undefined {
  for (const [index, { op, resource }] of operations.entries()) {
    const action = op === "seal" ? "seal" : "write";
    if (!allows(context.principal, action, resource)) {
      return new Problem("forbidden_scope", `The credential ${context.principal.id} has no ${action} scope that covers this resource.`, {
        resource,
        operation: index,
      });
    }
  }
  return undefined;
}

async function apply(parts: WriteParts, context: RequestContext, operations: Operations): Promise<Answer | Problem> {
  const verdict = await parts.store.transaction({ operations });
  for (const { op } of operations) parts.metrics.writeDone(op, verdict.kind === "committed" ? "accepted" : `transaction_${verdict.kind}`);
  return answerOf(verdict, operations, context.principal);
}

function answerOf(verdict: TransactionVerdict, operations: Operations, principal: Principal): Answer | Problem {
  if (verdict.kind === "refused") return firstRefusal(verdict, operations);
  if (verdict.kind !== "committed") return undecidedProblem(verdict);
  const results = verdict.results.map((accepted, index) =>
    receipt(accepted, operations[index]?.op ?? "put", visibilityOf(principal, accepted.resource)),
  );
  return new Answer(success.ok, `{"results":[${results.join(",")}]}`);
}

/**
 * A stale token first: the lease is lost then, and nothing else about the request matters. Then an
 * operation that finds its own number stored: it is by that the caller recognises a transaction
 * that was stored when it was sent before, and learns the revisions that it made.
 */
function firstRefusal({ refusals, currentRevs }: Extract<TransactionVerdict, { kind: "refused" }>, operations: Operations): Problem {
  const repeated = refusals.find(
    ({ index, refusal }) => refusal.kind === "sequence_out_of_order" && refusal.currentSeq === operations[index]?.seq,
  );
  const first = refusals.find(({ refusal }) => refusal.kind === "stale") ?? repeated ?? refusals[0];
  if (first === undefined) return new Problem("internal", "A transaction was refused without a reason.");
  const { code, detail, facts } = refusalProblem(first.refusal);
  const revs = first === repeated && currentRevs !== undefined ? { currentRevs } : {};
  return new Problem(code, detail, { ...facts, operation: first.index, ...revs });
}

// The body of a transaction, from text to the operations of the store. Each document stays the text
// it was, so that its numbers keep every digit. Shape, names, tokens and conditions are judged
// here; whether the operations may all happen is the store's answer.

export type Operations = readonly WriteRequest[];

/** `shared` is the token of the header, for operations without their own. */
export function parseOperations(text: string, shared: PresentedToken | undefined, holder: string): readonly WriteRequest[] | Problem {
  const texts = operationTexts(text);
  if (texts instanceof Problem) return texts;
  const operations: WriteRequest[] = [];
  const seen = new Set<string>();
  for (const [index, operationText] of texts.entries()) {
    const operation = parseOperation(operationText, shared, holder);
    if (operation instanceof Problem) return new Problem(operation.code, operation.detail, { ...operation.facts, operation: index });
    if (seen.has(operation.resource)) return refuse("A resource may appear only once in a transaction.", index);
    seen.add(operation.resource);
    operations.push(operation);
  }
  return operations;
}

function operationTexts(text: string): readonly string[] | Problem {
  const [[key, list] = [], another] = membersOf(text) ?? [];
  if (key !== "operations" || list === undefined || another !== undefined)
    return refuse('The body must be an object with one member, "operations".');
  const texts = elementsOf(list);
  if (texts === undefined) return refuse("operations must be an array.");
  if (texts.length === 0 || texts.length > MAX_OPERATIONS)
    return refuse(`operations must have 1 to ${MAX_OPERATIONS} elements; it has ${texts.length}.`);
  return texts;
}

function parseOperation(text: string, shared: PresentedToken | undefined, holder: string): WriteRequest | Problem {
  const texts = membersOf(text);
  if (texts === undefined) return refuse("An operation must be an object.");
  let document: string | undefined;
  const members: Record<string, unknown> = {};
  for (const [key, member] of texts) {
    if (Object.hasOwn(members, key)) return refuse("An operation has two members of the same name.");
    if (key === "__proto__") return refuse("An operation has no member of this name.");
    if (key === "value") document = member;
    members[key] = key === "value" ? null : JSON.parse(member);
  }
  const parsed = operationSchema.safeParse(members);
  if (!parsed.success) return refuse(firstIssue(parsed.error));
  const shape = parsed.data;
  const resource = checkResourceName(shape.resource);
  if (resource instanceof Problem) return resource;
  const presented = tokenOf(shape, shared);
  if (presented instanceof Problem) return presented;
  const condition = conditionOf(shape);
  if (condition instanceof Problem) return condition;
  return { op: shape.op, resource, ...presented, expected: condition.expected, value: document, holder };
}

type ParsedOperation = ReturnType<typeof operationSchema.parse>;

function tokenOf(parsed: ParsedOperation, shared: PresentedToken | undefined): { token: number; seq: number | undefined } | Problem {
  const token = parsed.token ?? shared?.token;
  if (token === undefined)
    return new Problem("fencing_token_required", "This operation has no token, and there is no Fencing-Token header for all.");
  return { token, seq: parsed.seq ?? (parsed.token === undefined ? shared?.seq : undefined) };
}

function conditionOf(parsed: ParsedOperation): WriteCondition | Problem {
  if (parsed.op === "seal") return { expected: undefined };
  if (parsed.ifNoneMatch !== undefined) {
    if (parsed.ifMatch === undefined) return { expected: "absent" };
    return new Problem("precondition_unsupported", "ifMatch and ifNoneMatch cannot be combined.");
  }
  if (typeof parsed.ifMatch === "string") return parseIfMatch(parsed.ifMatch);
  return { expected: parsed.ifMatch };
}

function refuse(detail: string, operation?: number): Problem {
  return new Problem("json_invalid", detail, operation === undefined ? {} : { operation });
}

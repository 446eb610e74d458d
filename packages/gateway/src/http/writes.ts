// Writes: PUT, PATCH, DELETE and seal of one resource, transactions of several, and fences that an
// administrator moves by hand. From the request to a question for the store, and from its verdict to
// an answer. Everything that can be refused without the body is refused before the body is read.
import type { z } from "zod";
import { elementsOf, membersOf } from "../fence/json.js";
import {
  type Accepted,
  type Expected,
  MAX_OPERATIONS,
  type TransactionVerdict,
  type WriteOperation,
  type WriteRequest,
} from "../fence/verdict.js";
import { Answer, acceptedAnswer, problemOf, receipt, sealedAnswer, success, unread } from "./answer.js";
import { readJson, readText } from "./body.js";
import type { Handler, Serving } from "./dispatcher.js";
import { allows, authorize, checkResourceName } from "./names.js";
import { Problem } from "./problems.js";
import { readLarge } from "./reads.js";
import { type PresentedToken, parseFencingToken, parseIfMatch, parseWriteCondition, type RequestContext } from "./request.js";
import { fenceChange, firstIssue, operation as operationSchema } from "./schemas.js";
import { noRoom } from "./sending.js";

function handlerOf(op: WriteOperation): Handler {
  return async (context, serving) => {
    const { resource, principal, headers } = context;
    const presented = parseFencingToken(headers.fencingToken);
    if (presented instanceof Problem) return presented;
    const { token, seq } = presented;
    context.token = token;
    const expected = parseWriteCondition(headers);
    if (expected instanceof Problem) return expected;
    if (op === "seal" && expected !== undefined)
      return new Problem("precondition_unsupported", "A seal changes no document, so it takes no If-Match or If-None-Match.");
    const value = op === "put" || op === "patch" ? await readText(context, op === "put" ? "document" : "merge_patch", serving) : undefined;
    if (value instanceof Problem) return value;
    if ((op === "patch" || op === "seal") && !serving.sending.hasRoom(principal.id, 1)) return noRoom;
    const verdict = await serving.store.write({ op, resource, token, seq, expected, value, holder: principal.id });
    serving.metrics.writeDone(op, verdict.kind);
    if (op === "seal" && verdict.kind === "accepted" && verdict.value === undefined) return await showSealed(context, serving, verdict);
    return verdict.kind === "accepted" ? acceptedAnswer(verdict, op, allows(principal, "read", resource)) : problemOf(verdict);
  };
}

/** The document behind the fence, if nothing has been written since; otherwise nobody knows which one it was. */
async function showSealed(context: RequestContext, serving: Serving, sealed: Accepted): Promise<Answer | Problem> {
  const whole = await readLarge(context, serving, sealed);
  if (whole instanceof Problem || whole.kind !== "found" || whole.rev !== sealed.rev || whole.token !== sealed.token) return unread;
  return sealedAnswer(sealed, whole.value);
}

export const putDocument = handlerOf("put");
export const patchDocument = handlerOf("patch");
export const deleteDocument = handlerOf("delete");
export const seal = handlerOf("seal");

/**
 * POST /v1/fences: raising excludes a holder that must not write any more; lowering undoes a fence
 * that a wrong token raised. Lowering is the one operation that can admit an old holder again (G1),
 * so the credential and the reason are stored with it.
 */
export const changeFence: Handler = async (context, { store, bodies }) => {
  const { resource } = context;
  const asked = await readJson(context, fenceChange, bodies);
  if (asked instanceof Problem) return asked;
  const { action, token, reason } = asked;
  context.token = token;
  const change = { resource, token, reason, by: context.principal.id };
  const verdict = await (action === "raise" ? store.raiseFence(change) : store.lowerFence(change));
  if (verdict.kind === "changed")
    return new Answer(success.ok, JSON.stringify({ resource, previousToken: verdict.previousToken, token: verdict.token }), {
      token: verdict.token,
    });
  if (verdict.kind !== "unchanged") return problemOf(verdict);
  const detail = `The fence is not ${action === "raise" ? "below" : "above"} the given token, so there is nothing to ${action}.`;
  return new Problem("fence_unchanged", detail, { resource, currentToken: verdict.currentToken ?? undefined });
};

// POST /v1/transactions: several resources, all or nothing. The whole transaction is refused when
// one of its operations is.

export const transact: Handler = async (context, serving) => {
  const { principal } = context;
  const presented = readPresented(context);
  if (presented instanceof Problem) return presented;
  const text = await readText(context, "document", serving);
  if (text instanceof Problem) return text;
  const operations = parseOperations(text, presented, principal.id);
  if (operations instanceof Problem) return operations;
  for (const [index, { op, resource }] of operations.entries()) {
    const forbidden = authorize(principal, op === "seal" ? "seal" : "write", resource);
    if (forbidden !== undefined) return new Problem(forbidden.code, forbidden.detail, { resource, operation: index });
  }
  if (!serving.sending.hasRoom(principal.id, 1)) return noRoom;
  const verdict = await serving.store.transaction({ operations });
  for (const { op } of operations) serving.metrics.writeDone(op, verdict.kind === "committed" ? "accepted" : `transaction_${verdict.kind}`);
  if (verdict.kind === "refused") return firstRefusal(verdict, operations);
  if (verdict.kind !== "committed") return problemOf(verdict);
  const answerOf = (show: (accepted: Accepted, op: WriteOperation) => string): string =>
    `{"results":[${verdict.results.map((accepted, index) => show(accepted, operations[index]?.op ?? "put")).join(",")}]}`;
  const full = answerOf((accepted, op) => receipt(accepted, op, allows(principal, "read", accepted.resource)));
  const has = (op: WriteOperation): boolean => operations.some((operation) => operation.op === op);
  if (has("seal")) return new Answer(success.ok, full).orElse(unread);
  const shorter = has("patch")
    ? new Answer(
        success.ok,
        answerOf((accepted) => receipt(accepted, "put", false)),
      )
    : undefined;
  return new Answer(success.ok, full).orElse(shorter);
};

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
  if (condition === undefined) return presented;
  const detail = "A transaction has no revision of its own; put ifMatch or ifNoneMatch into its operations.";
  return new Problem("precondition_unsupported", detail);
}

/**
 * A stale token first: the lease is lost then, and nothing else about the request matters. Then an
 * operation that finds its own number stored: it is by that the caller recognises a transaction
 * that was stored when it was sent before, and learns the revisions that it made.
 */
function firstRefusal(
  { refusals, currentRevs }: Extract<TransactionVerdict, { kind: "refused" }>,
  operations: readonly WriteRequest[],
): Problem {
  const repeated = refusals.find(
    ({ index, refusal }) => refusal.kind === "sequence_out_of_order" && refusal.currentSeq === operations[index]?.seq,
  );
  const first = refusals.find(({ refusal }) => refusal.kind === "stale") ?? repeated ?? refusals[0];
  if (first === undefined) return new Problem("internal", "A transaction was refused without a reason.");
  const { code, detail, facts } = problemOf(first.refusal);
  return new Problem(code, detail, { ...facts, operation: first.index, currentRevs: first === repeated ? currentRevs : undefined });
}

// The body of a transaction, from text to the operations of the store. Each document stays the text
// it was, so that its numbers keep every digit. Shape, names, tokens and conditions are judged
// here; whether the operations may all happen is the store's answer.

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
  const token = shape.token ?? shared?.token;
  if (token === undefined)
    return new Problem("fencing_token_required", "This operation has no token, and there is no Fencing-Token header for all.");
  const seq = shape.seq ?? (shape.token === undefined ? shared?.seq : undefined);
  const expected = conditionOf(shape);
  if (expected instanceof Problem) return expected;
  return { op: shape.op, resource, token, seq, expected, value: document, holder };
}

function conditionOf(operation: z.output<typeof operationSchema>): Expected | undefined | Problem {
  if (operation.op === "seal") return undefined;
  const { ifMatch, ifNoneMatch } = operation;
  if (ifNoneMatch === undefined) return typeof ifMatch === "string" ? parseIfMatch(ifMatch) : ifMatch;
  return ifMatch === undefined ? "absent" : new Problem("precondition_unsupported", "ifMatch and ifNoneMatch cannot be combined.");
}

function refuse(detail: string, operation?: number): Problem {
  return new Problem("json_invalid", detail, { operation });
}

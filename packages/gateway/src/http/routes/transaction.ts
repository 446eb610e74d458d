// POST /v1/transactions: several resources, all or nothing. The whole transaction is refused when
// one of its operations is.
import type { TransactionVerdict } from "../../fence/verdict.js";
import { Answer, receipt, refusalProblem, replayedHeader, undecidedProblem } from "../answer.js";
import { mediaTypeFault, readBody } from "../body.js";
import type { RouteHandler } from "../dispatcher.js";
import { jsonFault } from "../json-text.js";
import { type Operations, parseOperations } from "../operation-list.js";
import { idempotencyOf, type PresentedToken, parseFencingToken, parseIdempotencyKey, parseWriteCondition } from "../preconditions.js";
import { Problem, success } from "../problem.js";
import type { RequestContext } from "../request-context.js";
import { allows, type Principal } from "../scopes.js";
import { visibilityOf, type WriteParts } from "./write.js";

export function transactionRoute(parts: WriteParts): RouteHandler {
  return async (context) => {
    const shared = readShared(context);
    if (shared instanceof Problem) return shared;
    const unreadable = mediaTypeFault(context.headers, "document");
    if (unreadable !== undefined) return unreadable;
    const text = await readBody(context, parts.bodyLimitBytes, parts.budget);
    if (text instanceof Problem) return text;
    const fault = jsonFault(text, parts.bodyLimitBytes);
    if (fault !== undefined) return fault;
    const operations = parseOperations(text, shared.presented, context.principal.id);
    if (operations instanceof Problem) return operations;
    return scopeFault(context, operations) ?? apply(parts, context, { operations, text, shared });
  };
}

interface Shared {
  readonly presented: PresentedToken | undefined;
  readonly idempotencyKey: string | undefined;
}

function readShared(context: RequestContext): Shared | Problem {
  const { fencingToken, idempotencyKey } = context.headers;
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
  const key = parseIdempotencyKey(idempotencyKey);
  return key instanceof Problem ? key : { presented, idempotencyKey: key };
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

async function apply(
  parts: WriteParts,
  context: RequestContext,
  request: { readonly operations: Operations; readonly text: string; readonly shared: Shared },
): Promise<Answer | Problem> {
  const { operations, text, shared } = request;
  const idempotency =
    shared.idempotencyKey === undefined
      ? undefined
      : idempotencyOf(context.principal, shared.idempotencyKey, ["transaction", context.headers.fencingToken, text]);
  const verdict = await parts.store.transaction({ operations, idempotency });
  for (const { op } of operations) parts.metrics.writeDone(op, verdict.kind === "committed" ? "accepted" : `transaction_${verdict.kind}`);
  return answerOf(verdict, operations, context.principal);
}

function answerOf(verdict: TransactionVerdict, operations: Operations, principal: Principal): Answer | Problem {
  if (verdict.kind === "refused") return firstRefusal(verdict);
  if (verdict.kind !== "committed") return undecidedProblem(verdict);
  const results = verdict.results.map((accepted, index) =>
    receipt(accepted, operations[index]?.op ?? "put", visibilityOf(principal, accepted.resource)),
  );
  return new Answer(success.ok, `{"results":[${results.join(",")}]}`, { headers: verdict.replayed ? replayedHeader : undefined });
}

/** A stale token first: the lease is lost then, and nothing else about the request matters. */
function firstRefusal({ refusals }: Extract<TransactionVerdict, { kind: "refused" }>): Problem {
  const first = refusals.find(({ refusal }) => refusal.kind === "stale") ?? refusals[0];
  if (first === undefined) return new Problem("internal", "A transaction was refused without a reason.");
  const problem = refusalProblem(first.refusal);
  return new Problem(problem.code, problem.detail, { ...problem.facts, operation: first.index });
}

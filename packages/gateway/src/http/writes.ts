// PUT, PATCH, DELETE and seal of one resource, and fences that an administrator moves by hand: from
// the request to a question for the store, and from its verdict to an answer. Everything that can be
// refused without the body is refused before the body is read.
import type { WriteOperation } from "../fence/verdict.js";
import { Answer, acceptedAnswer, problemOf, success } from "./answer.js";
import { readJson, readText } from "./body.js";
import type { Handler } from "./dispatcher.js";
import { allows } from "./names.js";
import { Problem } from "./problems.js";
import { parseFencingToken, parseWriteCondition } from "./request.js";
import { fenceChange } from "./schemas.js";

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
    const verdict = await serving.store.write({ op, resource, token, seq, expected, value, holder: principal.id });
    serving.metrics.writeDone(op, verdict.kind);
    return verdict.kind === "accepted" ? acceptedAnswer(verdict, op, allows(principal, "read", resource)) : problemOf(verdict);
  };
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
export const changeFence: Handler = async (context, { store, budget }) => {
  const { resource } = context;
  const asked = await readJson(context, fenceChange, budget);
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

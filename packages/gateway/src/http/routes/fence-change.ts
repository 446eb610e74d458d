// POST /v1/fences: an administrator moves a fence by hand. Raising excludes a holder that must not
// write any more; lowering undoes a fence that a wrong token raised. Lowering is the one operation
// that can admit an old holder again (G1), so the credential and the reason are stored with it.
import { Answer, refusalProblem, undecidedProblem } from "../answer.js";
import { mediaTypeFault, readBody } from "../body.js";
import type { RouteHandler } from "../dispatcher.js";
import { jsonFault } from "../json-text.js";
import { FENCE_PREFIX } from "../paths.js";
import { Problem, success } from "../problem.js";
import { fenceChange, firstIssue } from "../schemas.js";
import { targetOf } from "./target.js";
import type { WriteParts } from "./write.js";

const MAX_FENCE_CHANGE_BYTES = 16 * 1024;

export function fenceChangeRoute(parts: WriteParts): RouteHandler {
  return async (context) => {
    const resource = targetOf(context, FENCE_PREFIX, "admin");
    if (resource instanceof Problem) return resource;
    const unreadable = mediaTypeFault(context.headers, "document");
    if (unreadable !== undefined) return unreadable;
    const text = await readBody(context, MAX_FENCE_CHANGE_BYTES, parts.budget);
    if (text instanceof Problem) return text;
    const fault = jsonFault(text, MAX_FENCE_CHANGE_BYTES);
    if (fault !== undefined) return fault;
    const parsed = fenceChange.safeParse(JSON.parse(text));
    if (!parsed.success) return new Problem("json_invalid", firstIssue(parsed.error));
    const { action, token, reason } = parsed.data;
    context.token = token;
    const change = { resource, token, reason, by: context.principal.id };
    const verdict = await (action === "raise" ? parts.store.raiseFence(change) : parts.store.lowerFence(change));
    switch (verdict.kind) {
      case "changed":
        return new Answer(success.ok, JSON.stringify({ resource, previousToken: verdict.previousToken, token: verdict.token }), {
          token: verdict.token,
        });
      case "unchanged":
        return new Problem(
          "fence_unchanged",
          `The fence is not ${action === "raise" ? "below" : "above"} the given token, so there is nothing to ${action}.`,
          {
            resource,
            ...(verdict.currentToken === null ? {} : { currentToken: verdict.currentToken }),
          },
        );
      case "contention":
        return refusalProblem(verdict);
      default:
        return undecidedProblem(verdict);
    }
  };
}

// What was refused, for those who ask later, and fences that an administrator moves by hand.
import type { RefusalRing } from "../../observe/refusals.js";
import { Answer, Problem, type ProblemCode, refusalProblem, success, undecidedProblem } from "../answer.js";
import { readJson } from "../body.js";
import type { RouteHandler } from "../dispatcher.js";
import { FENCE_PREFIX, parseQuery, pathOf, type RequestContext, targetOf } from "../request.js";
import { fenceChange, refusedQuery } from "../schemas.js";
import { prefixFault } from "./read.js";
import type { WriteParts } from "./write.js";

/** What a write was refused for, and not how it was misspelled. */
const kept: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  "fencing_token_stale",
  "fencing_token_unissued",
  "sequence_out_of_order",
  "etag_mismatch",
  "verification_unavailable",
  "contention",
  "document_too_large",
]);

export function noteRefused(ring: RefusalRing, { code, facts }: Problem, context: RequestContext): void {
  const resource = facts.resource ?? context.resource;
  if (resource === undefined || !kept.has(code)) return;
  const presentedToken = facts.presentedToken ?? context.token ?? null;
  const address = context.request.socket.remoteAddress ?? "";
  const { requestId, principal } = context;
  ring.note({ resource, code, presentedToken, currentToken: facts.currentToken ?? null, caller: principal.id, address, requestId });
}

export function refusedRoute({ refusals }: { readonly refusals: RefusalRing }): RouteHandler {
  return (context) => {
    const query = parseQuery(pathOf(context.request.url ?? "/"), refusedQuery);
    if (query instanceof Problem) return query;
    const { prefix, limit, since, before = Number.POSITIVE_INFINITY } = query;
    const fault = prefixFault(context, prefix);
    if (fault !== undefined) return fault;
    const from = since?.getTime() ?? 0;
    const rows = refusals.newest(limit + 1, 0, ({ id, at, resource }) => id < before && at >= from && resource.startsWith(prefix));
    const entries = rows.slice(0, limit).map(({ at, address: _address, requestId: _requestId, ...row }) => ({ ...row, at: new Date(at) }));
    const nextBefore = rows.length > limit ? (entries.at(-1)?.id ?? null) : null;
    return new Answer(success.ok, JSON.stringify({ since: new Date(refusals.since), entries, nextBefore }));
  };
}

// POST /v1/fences: an administrator moves a fence by hand. Raising excludes a holder that must not
// write any more; lowering undoes a fence that a wrong token raised. Lowering is the one operation
// that can admit an old holder again (G1), so the credential and the reason are stored with it.

const MAX_FENCE_CHANGE_BYTES = 16 * 1024;

export function fenceChangeRoute(parts: WriteParts): RouteHandler {
  return async (context) => {
    const resource = targetOf(context, FENCE_PREFIX, "admin");
    if (resource instanceof Problem) return resource;
    const asked = await readJson(context, fenceChange, { limitBytes: MAX_FENCE_CHANGE_BYTES, budget: parts.budget });
    if (asked instanceof Problem) return asked;
    const { action, token, reason } = asked;
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

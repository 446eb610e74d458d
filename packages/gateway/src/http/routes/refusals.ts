// Refused writes: which of them are kept, and the pages of them.
import type { RefusedWrites } from "../../fenced-store.js";
import { Answer, unavailableProblem } from "../answer.js";
import type { RouteHandler } from "../dispatcher.js";
import { Problem, type ProblemCode, success } from "../problem.js";
import { parseQuery } from "../query.js";
import type { RequestContext } from "../request-context.js";
import { refusedQuery } from "../schemas.js";
import { prefixFault, type StoreAccess } from "./read.js";
import { pathOf } from "./target.js";

/** What a write was refused for, and not how it was misspelled. */
const kept: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  "fencing_token_stale",
  "fencing_token_unissued",
  "sequence_out_of_order",
  "etag_mismatch",
  "verification_unavailable",
  "contention",
  "document_too_large",
  "idempotency_key_reused",
  "function_failed",
]);

export function noteRefused(refusals: RefusedWrites | undefined, { code, facts }: Problem, context: RequestContext): void {
  const resource = facts.resource ?? context.resource;
  if (refusals === undefined || resource === undefined || !kept.has(code)) return;
  const { currentToken = null } = facts;
  const presentedToken = facts.presentedToken ?? context.token ?? null;
  refusals.note({ resource, code, presentedToken, currentToken, caller: context.principal.id, at: new Date() });
}

export function refusedRoute(parts: StoreAccess): RouteHandler {
  return async (context) => {
    const query = parseQuery(pathOf(context.request.url ?? "/"), refusedQuery);
    if (query instanceof Problem) return query;
    const fault = prefixFault(context, query.prefix);
    if (fault !== undefined) return fault;
    const result = await parts.store.refusals?.read(query);
    if (result === undefined) return new Problem("not_found", "This gateway keeps no refused writes.");
    if (result.kind === "unavailable") return unavailableProblem(result);
    return new Answer(success.ok, JSON.stringify({ entries: result.entries, nextBefore: result.nextBefore }));
  };
}

// Refused writes: which of them are kept, and the pages of them.
import type { RefusedWrite } from "../../fenced-store.js";
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
  "patch_failed",
  "verification_unavailable",
  "contention",
  "document_too_large",
  "idempotency_key_reused",
  "function_failed",
]);

/** Which connection brought it, and under which id the log has it. */
export interface RefusalOrigin {
  readonly address: string;
  readonly requestId: string;
}

/** What is told of refused writes; noting one costs its caller nothing. */
export interface RefusalListener {
  note(refused: RefusedWrite, origin: RefusalOrigin): void;
}

export function noteRefused(listeners: readonly (RefusalListener | undefined)[], { code, facts }: Problem, context: RequestContext): void {
  const resource = facts.resource ?? context.resource;
  if (resource === undefined || !kept.has(code) || listeners.every((listener) => listener === undefined)) return;
  const { currentToken = null } = facts;
  const presentedToken = facts.presentedToken ?? context.token ?? null;
  const refused = { resource, code, presentedToken, currentToken, caller: context.principal.id, at: new Date() };
  const origin = { address: context.request.socket.remoteAddress ?? "", requestId: context.requestId };
  for (const listener of listeners) listener?.note(refused, origin);
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

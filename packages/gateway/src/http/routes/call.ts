// POST /v1/call/{function}: calls a function of the user's database in one transaction, guarded by
// the leases first. The arguments and the result stay the text they are, so that numbers keep every
// digit.
import type { CallLease, CallRequest, CallVerdict } from "../../fence/verdict.js";
import { Answer, refusalProblem, undecidedProblem } from "../answer.js";
import { authorize } from "../auth.js";
import { mediaTypeFault, readBody } from "../body.js";
import type { RouteHandler } from "../dispatcher.js";
import { membersOf } from "../json-members.js";
import { jsonFault } from "../json-text.js";
import { CALL_PREFIX } from "../paths.js";
import { type PresentedToken, parseFencingToken, parseWriteCondition } from "../preconditions.js";
import { Problem, success } from "../problem.js";
import type { RequestContext } from "../request-context.js";
import { checkResourceName } from "../resource-name.js";
import { callRequest, firstIssue } from "../schemas.js";
import { pathOf } from "./target.js";
import type { WriteParts } from "./write.js";

export function callRoute(parts: WriteParts): RouteHandler {
  return async (context) => {
    const called = pathOf(context.request.url ?? "/").slice(CALL_PREFIX.length);
    const refused = authorize(context.principal, "call", called) ?? unsupported(context);
    if (refused !== undefined) return refused;
    const { fencingToken } = context.headers;
    const shared = fencingToken === undefined ? undefined : parseFencingToken(fencingToken);
    if (shared instanceof Problem) return shared;
    context.token = shared?.token;
    const text = await readBody(context, parts.bodyLimitBytes, parts.budget);
    if (text instanceof Problem) return text;
    const fault = jsonFault(text, parts.bodyLimitBytes);
    if (fault !== undefined) return fault;
    const parsed = parseCall(text, shared, context);
    if (parsed instanceof Problem) return parsed;
    const request = { ...parsed, function: called, holder: context.principal.id, maxAnswerBytes: parts.bodyLimitBytes };
    const verdict = await parts.store.call(request);
    parts.metrics.writeDone("call", verdict.kind === "called" ? "accepted" : verdict.kind);
    return answerOf(verdict, request);
  };
}

function unsupported(context: RequestContext): Problem | undefined {
  const unreadable = mediaTypeFault(context.headers, "document");
  if (unreadable !== undefined) return unreadable;
  const condition = parseWriteCondition(context.headers);
  if (condition instanceof Problem) return condition;
  if (condition.expected !== undefined) return new Problem("precondition_unsupported", "A call has no revision: its function can compare.");
  if (context.headers.idempotencyKey === undefined) return undefined;
  return new Problem("precondition_unsupported", "A call takes no Idempotency-Key; a seq makes it safe to repeat.");
}

function parseCall(
  text: string,
  shared: PresentedToken | undefined,
  context: RequestContext,
): Pick<CallRequest, "leases" | "arguments"> | Problem {
  const members = membersOf(text);
  if (members === undefined || new Set(members.map(({ key }) => key)).size < members.length)
    return new Problem("json_invalid", "The body must be an object without a member twice.");
  const parsed = callRequest.safeParse(JSON.parse(text));
  if (!parsed.success) return new Problem("json_invalid", firstIssue(parsed.error));
  const leases: CallLease[] = [];
  for (const [index, { resource: given, token = shared?.token, ...lease }] of parsed.data.leases.entries()) {
    const resource = permittedName(given, context);
    if (resource instanceof Problem) return new Problem(resource.code, resource.detail, { ...resource.facts, operation: index });
    if (token === undefined)
      return new Problem("fencing_token_required", "This lease has no token, and there is no Fencing-Token header for all.", {
        operation: index,
      });
    if (leases.some((other) => other.resource === resource))
      return new Problem("json_invalid", "A resource may appear only once among the leases.", { operation: index });
    const seq = lease.seq ?? (parsed.data.leases[index]?.token === undefined ? (shared?.seq ?? undefined) : undefined);
    leases.push({ resource, token, seq });
  }
  if (leases.length === 1) context.resource = leases[0]?.resource;
  return { leases, arguments: members.find(({ key }) => key === "arguments")?.text ?? "{}" };
}

function permittedName(given: string, context: RequestContext): string | Problem {
  const resource = checkResourceName(given);
  return resource instanceof Problem ? resource : (authorize(context.principal, "write", resource) ?? resource);
}

function answerOf(verdict: CallVerdict, { leases }: CallRequest): Answer | Problem {
  switch (verdict.kind) {
    case "called": {
      const held = JSON.stringify(leases.map(({ resource, token }) => ({ resource, token })));
      return new Answer(success.ok, `{"leases":${held},"value":${verdict.value}}`);
    }
    case "refused":
      return refusalProblem(verdict.refusal);
    case "function_unknown":
      return new Problem("function_unknown", verdict.message);
    case "arguments_invalid":
      return new Problem("json_invalid", verdict.message);
    case "function_failed": {
      const { sqlState, message } = verdict;
      return new Problem("function_failed", message, { outcome: "not_applied", ...(sqlState === undefined ? {} : { sqlState }) });
    }
    default:
      return undecidedProblem(verdict);
  }
}

// From the raw request target to the resource it names. req.params, req.path and req.query are not
// used: they are decoded by other rules than a resource name.
import { authorize } from "../auth.js";
import { Problem } from "../problem.js";
import type { RequestContext } from "../request-context.js";
import { parseResourceName } from "../resource-name.js";
import type { Action } from "../scopes.js";

/** A client of a proxy may send the whole URL; the path is what counts. */
export function pathOf(url: string): string {
  if (url.startsWith("/")) return url;
  const authority = url.indexOf("//");
  const path = authority === -1 ? -1 : url.indexOf("/", authority + 2);
  return path === -1 ? "/" : url.slice(path);
}

/**
 * The name after `prefix`, if the caller may do `action` with it. Everything after the prefix is
 * the name, even a "?", which would otherwise be cut off silently.
 */
export function targetOf(context: RequestContext, prefix: string, action: Action): string | Problem {
  return authorizedName(context, pathOf(context.request.url ?? "/").slice(prefix.length), action);
}

const SEAL_SUFFIX = "/seal";

/**
 * POST has no other use under /v1/resources, so the last segment is the verb even of a resource
 * whose own name ends in /seal.
 */
export function sealTargetOf(context: RequestContext, prefix: string): string | Problem | undefined {
  const path = pathOf(context.request.url ?? "/");
  if (!isSeal(context)) return undefined;
  return authorizedName(context, path.slice(prefix.length, -SEAL_SUFFIX.length), "seal");
}

export function isSeal(context: RequestContext): boolean {
  return pathOf(context.request.url ?? "/").endsWith(SEAL_SUFFIX);
}

/** For routes with a query: the name ends where the query begins. */
export function targetBeforeQuery(context: RequestContext, prefix: string, action: Action): string | Problem {
  const path = pathOf(context.request.url ?? "/");
  const query = path.indexOf("?");
  return authorizedName(context, path.slice(prefix.length, query === -1 ? undefined : query), action);
}

function authorizedName(context: RequestContext, encoded: string, action: Action): string | Problem {
  const resource = parseResourceName(encoded);
  if (resource instanceof Problem) return resource;
  context.resource = resource;
  return authorize(context.principal, action, resource) ?? resource;
}

// Reads: one resource, pages of resources, the history of one, the state of a fence. They raise no
// fence.
import { MAX_NAME_BYTES } from "../../fence/verdict.js";
import type { FencedStore, ReadResult, ResourceState } from "../../fenced-store.js";
import { Answer, Problem, success, unavailableProblem } from "../answer.js";
import type { RouteHandler } from "../dispatcher.js";
import { allows, characterFault } from "../names.js";
import {
  FENCE_PREFIX,
  HISTORY_PREFIX,
  parseQuery,
  parseReadCondition,
  pathOf,
  RESOURCE_PREFIX,
  type RequestContext,
  targetBeforeQuery,
  targetOf,
} from "../request.js";
import { historyQuery, listQuery } from "../schemas.js";

/** How a route reaches the store: a getter, because the routes exist before the store is open. */
export interface StoreAccess {
  readonly store: FencedStore;
}

export function readRoute(parts: StoreAccess): RouteHandler {
  return async (context) => {
    const resource = targetOf(context, RESOURCE_PREFIX, "read");
    if (resource instanceof Problem) return resource;
    const known = parseReadCondition(context.headers);
    if (known instanceof Problem) return known;
    const result = await parts.store.read(resource);
    if (result.kind !== "found") return withoutDocument(result);
    if (known?.(result.rev)) return new Answer(success.notModified, undefined, result);
    return new Answer(success.ok, result.value, result);
  };
}

function withoutDocument(result: Exclude<ReadResult, { kind: "found" }>): Problem {
  switch (result.kind) {
    case "absent":
      return new Problem("not_found", "The resource has a fence but no document.", {
        resource: result.resource,
        currentToken: result.token,
      });
    case "unknown_resource":
      return new Problem("not_found", "Nothing was ever written here.", { resource: result.resource });
    case "unavailable":
      return unavailableProblem(result);
  }
}

export function listRoute(parts: StoreAccess): RouteHandler {
  return async (context) => {
    const query = parseQuery(pathOf(context.request.url ?? "/"), listQuery);
    if (query instanceof Problem) return query;
    const refused = prefixFault(context, query.prefix);
    if (refused !== undefined) return refused;
    const cursor = query.cursor === undefined ? undefined : Buffer.from(query.cursor, "base64url").toString("utf8");
    const { prefix, limit, include, tombstones } = query;
    const result = await parts.store.list({ prefix, limit, cursor, include, tombstones });
    if (result.kind === "unavailable") return unavailableProblem(result);
    const next = result.nextCursor === null ? null : Buffer.from(result.nextCursor).toString("base64url");
    const torn = result.snapshot === false ? ',"snapshot":false' : "";
    return new Answer(success.ok, `{"items":[${result.items.map(itemText).join(",")}],"nextCursor":${JSON.stringify(next)}${torn}}`);
  };
}

/** Why this caller may not look at names with this prefix. */
export function prefixFault(context: RequestContext, prefix: string): Problem | undefined {
  const fault = Buffer.byteLength(prefix) > MAX_NAME_BYTES ? "is too long" : characterFault(prefix);
  if (fault !== undefined) return new Problem("query_invalid", `The prefix ${fault}.`);
  if (allows(context.principal, "read", prefix)) return undefined;
  return new Problem("forbidden_scope", "No read scope covers this prefix; ask for a longer one.");
}

function itemText(item: ResourceState & { readonly value?: string | undefined }): string {
  const { resource, token, rev, seq, holder, updatedAt } = item;
  const text = JSON.stringify({ resource, token, rev, seq, holder, updatedAt });
  return item.value === undefined ? text : `${text.slice(0, -1)},"value":${item.value}}`;
}

export function historyRoute(parts: StoreAccess): RouteHandler {
  return async (context) => {
    const resource = targetBeforeQuery(context, HISTORY_PREFIX, "read");
    if (resource instanceof Problem) return resource;
    const query = parseQuery(pathOf(context.request.url ?? "/"), historyQuery);
    if (query instanceof Problem) return query;
    const result = await parts.store.history({ resource, limit: query.limit, beforeRev: query.before });
    if (result.kind === "unavailable") return unavailableProblem(result);
    if (result.kind === "off") return new Problem("not_found", "This gateway keeps no history.", { resource });
    return new Answer(success.ok, JSON.stringify({ resource, entries: result.entries, nextBefore: result.nextBeforeRev }));
  };
}

/** The fence and its holder, also where there is no document. */
export function fenceRoute(parts: StoreAccess): RouteHandler {
  return async (context) => {
    const resource = targetOf(context, FENCE_PREFIX, "read");
    if (resource instanceof Problem) return resource;
    const result = await parts.store.read(resource);
    if (result.kind !== "found" && result.kind !== "absent") return withoutDocument(result);
    return new Answer(success.ok, itemText({ ...result, value: undefined }), { token: result.token });
  };
}

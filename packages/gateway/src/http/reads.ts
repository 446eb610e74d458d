// Reads: one resource, pages of resources, the history of one, the state of a fence, and what was
// refused. They raise no fence.
import { MAX_NAME_BYTES } from "../fence/verdict.js";
import type { ListResult, ResourceState, WholeResult } from "../fenced-store.js";
import { Answer, problemOf, success } from "./answer.js";
import type { Handler, Serving } from "./dispatcher.js";
import { allows, characterFault } from "./names.js";
import { Problem } from "./problems.js";
import { parseQuery, parseReadCondition, pathOf, type RequestContext } from "./request.js";
import { historyQuery, listQuery, refusedQuery } from "./schemas.js";
import { noRoom } from "./sending.js";

export const readDocument: Handler = async (context, serving) => {
  const known = parseReadCondition(context.headers);
  if (known instanceof Problem) return known;
  const result = await serving.store.read(context.resource);
  if (result.kind !== "found" && result.kind !== "large") return withoutDocument(result);
  if (known?.(result.rev)) return new Answer(success.notModified, undefined, result);
  if (result.kind === "found") return new Answer(success.ok, result.value, result);
  const whole = await readLarge(context, serving, result);
  if (whole instanceof Problem) return whole;
  return whole.kind === "found" ? new Answer(success.ok, [whole.value], whole) : withoutDocument(whole);
};

/** All who want this revision get the same bytes. It may be a later one. */
export async function readLarge(
  context: RequestContext,
  { sending, store }: Serving,
  { kind, resource, rev, token }: Pick<ResourceState, "resource" | "rev" | "token"> & { readonly kind: "large" | "accepted" },
): Promise<WholeResult | Problem> {
  const wanted = { caller: context.principal.id, key: `${rev} ${token} ${resource}`, isDone: kind === "accepted" };
  const read = await sending.read(
    wanted,
    () => store.readWhole(resource),
    (result) => (result.kind === "found" ? result.value.length : 0),
  );
  if (read === undefined) return noRoom;
  context.held = read.held;
  return read.result;
}

function withoutDocument(result: Exclude<WholeResult, { kind: "found" }>): Problem {
  switch (result.kind) {
    case "absent": {
      const { resource, token: currentToken } = result;
      return new Problem("not_found", "The resource has a fence but no document.", { resource, currentToken });
    }
    case "unknown_resource":
      return new Problem("not_found", "Nothing was ever written here.", { resource: result.resource });
    case "unavailable":
      return problemOf(result);
  }
}

/** The fence and its holder, also where there is no document, and who last moved it by hand. */
export const readFence: Handler = async ({ resource }, { store }) => {
  const [result, moved = null] = await Promise.all([store.read(resource), store.lastMove(resource)]);
  if (!("rev" in result)) return withoutDocument(result);
  if (moved !== null && "kind" in moved) return problemOf(moved);
  const { token, rev, seq, holder, updatedAt } = result;
  return new Answer(success.ok, JSON.stringify({ resource, token, rev, seq, holder, updatedAt, moved }), { token });
};

export const listResources: Handler = async (context, { store, sending }) => {
  const query = parseQuery(pathOf(context.request), listQuery);
  if (query instanceof Problem) return query;
  const refused = prefixFault(context, query.prefix);
  if (refused !== undefined) return refused;
  const cursor = query.cursor === undefined ? undefined : Buffer.from(query.cursor, "base64url").toString("utf8");
  const request = { ...query, cursor };
  const read = await (query.include === "fences"
    ? { held: undefined, result: await store.list(request) }
    : sending.read({ caller: context.principal.id }, () => store.list(request), lengthOf));
  if (read === undefined) return noRoom;
  const { held, result } = read;
  context.held = held;
  if (result.kind === "unavailable") return problemOf(result);
  const next = result.nextCursor === null ? null : Buffer.from(result.nextCursor).toString("base64url");
  const torn = result.snapshot === false ? ',"snapshot":false' : "";
  return new Answer(success.ok, `{"items":[${result.items.map(itemText).join(",")}],"nextCursor":${JSON.stringify(next)}${torn}}`);
};

function lengthOf(page: ListResult): number {
  return page.kind === "page" ? page.items.reduce((sum, { value = "" }) => sum + value.length, 0) : 0;
}

/** Why this caller may not look at names with this prefix. */
function prefixFault(context: RequestContext, prefix: string): Problem | undefined {
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

export const readHistory: Handler = async (context, { store }) => {
  const { resource } = context;
  const query = parseQuery(pathOf(context.request), historyQuery);
  if (query instanceof Problem) return query;
  const result = await store.history({ resource, limit: query.limit, beforeRev: query.before });
  if (result.kind === "unavailable") return problemOf(result);
  if (result.kind === "off") return new Problem("not_found", "This gateway keeps no history.", { resource });
  return new Answer(success.ok, JSON.stringify({ resource, entries: result.entries, nextBefore: result.nextBeforeRev }));
};

export const listRefused: Handler = (context, { refusals }) => {
  const query = parseQuery(pathOf(context.request), refusedQuery);
  if (query instanceof Problem) return query;
  const { prefix, limit, since, before = Number.POSITIVE_INFINITY } = query;
  const fault = prefixFault(context, prefix);
  if (fault !== undefined) return fault;
  const from = since?.getTime() ?? 0;
  const rows = refusals.newest(limit + 1, 0, ({ id, at, resource }) => id < before && at >= from && resource.startsWith(prefix));
  const entries = rows.slice(0, limit).map(({ address: _address, requestId: _requestId, ...row }) => {
    return { ...row, at: new Date(row.at), firstAt: new Date(row.firstAt) };
  });
  const nextBefore = rows.length > limit ? (entries.at(-1)?.id ?? null) : null;
  return new Answer(success.ok, JSON.stringify({ since: new Date(refusals.since), entries, nextBefore }));
};

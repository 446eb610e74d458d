// The stream of accepted writes, as server-sent events. It begins where the reader says, by
// Last-Event-ID or `after`, or now. A reader that takes nothing is ended by the idle timeout of its
// connection; until then one page waits for it. The credential is looked at before each page: a
// stream lasts longer than a key.
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { ChangeFeed, ChangePage } from "../../store/change-feed.js";
import { EventStream, unavailableProblem } from "../answer.js";
import type { Authenticator } from "../auth.js";
import type { RouteHandler } from "../dispatcher.js";
import { Problem } from "../problem.js";
import { parseQuery } from "../query.js";
import type { RequestContext } from "../request-context.js";
import { changesQuery } from "../schemas.js";
import { allows } from "../scopes.js";
import { prefixFault, type StoreAccess } from "./read.js";
import { pathOf } from "./target.js";

export interface ChangesParts extends StoreAccess {
  readonly authenticator: Authenticator;
  /** Comments keep the connection from looking idle; a third of its idle timeout at most. */
  readonly keepAliveMs: number;
}

const gone = new Problem("changes_gone", "Changes after this position are no longer kept. Read what you need anew, and go on from now.");

const unordered = new Problem(
  "not_found",
  "The tables of this gateway are distributed by Citus, whose shards give changes no common order: there are none to tell here.",
);

export function changesRoute(parts: ChangesParts): RouteHandler {
  return async (context) => {
    const query = parseQuery(pathOf(context.request.url ?? "/"), changesQuery);
    if (query instanceof Problem) return query;
    const fault = prefixFault(context, query.prefix);
    if (fault !== undefined) return fault;
    const resumed = lastEventId(context.request.rawHeaders);
    if (resumed instanceof Problem) return resumed;
    const feed = parts.store.changes;
    if (feed === undefined) return new Problem("not_found", "This gateway keeps no history, so it has no changes to tell.");
    if (!feed.enter())
      return unavailableProblem({ kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 5_000 });
    const first = await feed.page(query.prefix, resumed ?? query.after);
    if (first.kind !== "changes" || context.request.method === "HEAD") feed.leave();
    if (first.kind === "gone") return gone;
    if (first.kind === "unordered") return unordered;
    if (first.kind === "unavailable") return unavailableProblem(first);
    return new EventStream((response) => {
      if (context.request.method === "HEAD") return void response.end();
      const isAllowed = () => mayStillRead(parts.authenticator, context, query.prefix);
      void tell({ feed, prefix: query.prefix, first, response, isAllowed, keepAliveMs: parts.keepAliveMs }).finally(() => feed.leave());
    });
  };
}

function lastEventId(rawHeaders: RequestContext["request"]["rawHeaders"]): number | Problem | undefined {
  const given = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "last-event-id");
  const [text] = given;
  if (text === undefined || (given.length === 1 && text === "")) return undefined;
  if (given.length > 1 || !/^(0|[1-9][0-9]{0,14})$/.test(text))
    return new Problem("query_invalid", "Last-Event-ID is the id of an event of this stream.");
  return Number(text);
}

async function mayStillRead(authenticator: Authenticator, context: RequestContext, prefix: string): Promise<boolean> {
  const { request, headers } = context;
  const principal = await authenticator.authenticate(headers.authorization, { headers, socket: request.socket });
  return !(principal instanceof Problem) && allows(principal, "read", prefix);
}

interface Telling {
  readonly feed: ChangeFeed;
  readonly prefix: string;
  readonly first: ChangePage & { readonly kind: "changes" };
  readonly response: ServerResponse;
  readonly isAllowed: () => Promise<boolean>;
  readonly keepAliveMs: number;
}

async function tell({ feed, prefix, first, response, isAllowed, keepAliveMs }: Telling): Promise<void> {
  const left = new AbortController();
  response.once("close", () => left.abort());
  // A reader that left while its first page was read is never told of as closed again.
  const isOver = (): boolean => response.destroyed || left.signal.aborted || feed.ended.aborted;
  let page: ChangePage = first;
  let position = first.position;
  while (!isOver()) {
    if (page.kind === "gone") {
      await write(response, `event: gone\ndata: ${JSON.stringify({ code: gone.code, detail: gone.detail })}\n\n`, left.signal);
      break;
    }
    if (page.kind !== "changes") break; // The reader comes back, here or to another gateway.
    position = page.position;
    const events = page.entries.map((entry) => `event: change\nid: ${entry.position}\ndata: ${JSON.stringify(entry)}\n\n`);
    // Also without an event, so that a reader of a quiet prefix resumes where it was.
    await write(response, `${events.join("")}: \nid: ${position}\n\n`, left.signal);
    await feed.beyond(position, keepAliveMs, left.signal);
    if (isOver() || !(await isAllowed())) break;
    page = await feed.page(prefix, position);
  }
  response.end();
}

async function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  if (response.destroyed || response.write(text)) return;
  await once(response, "drain", { signal }).catch(() => undefined);
}

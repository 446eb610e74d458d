// Everything about one resource: what each node says, the fence, what was written and what was
// refused. A document is never read into it.
import type { InspectBallot } from "@palisade/lock";
import type { FencedStore } from "../fenced-store.js";
import { Problem } from "../http/problem.js";
import { checkResourceName } from "../http/resource-name.js";
import { type LockWatch, messageOf, type WatchedLock } from "./lock-watch.js";
import type { FenceView, HistoryRow, LockView, NodeAnswer, RefusalRow, ResourceView, Trouble } from "./messages.js";
import type { RefusalRing } from "./refusal-ring.js";

const MAX_ENTRIES = 100;
const nothingKnown = "The database does not answer.";

interface ResourceSources {
  readonly store: FencedStore;
  readonly lock: WatchedLock | undefined;
  readonly watch: LockWatch | undefined;
  readonly ring: RefusalRing;
}

export async function viewOf(sources: ResourceSources, resource: string, mayRelease: boolean): Promise<ResourceView> {
  const { lock, watch, ring } = sources;
  // The lock takes names that the store does not; those have neither fence nor history.
  const store = checkResourceName(resource) instanceof Problem ? undefined : sources.store;
  const [locked, fence, history, kept] = await Promise.all([
    lock && lockView(lock, watch, resource),
    store && fenceView(store, resource),
    store && historyOf(store, resource),
    store && keptRefusals(store, resource),
  ]);
  const recent = ring.newest(MAX_ENTRIES, 0, (row) => row.resource === resource);
  const oldest = recent.at(-1)?.at ?? Number.POSITIVE_INFINITY;
  const refusals = [...recent, ...(kept ?? []).filter(({ at }) => at < oldest)].slice(0, MAX_ENTRIES);
  return { resource, at: Date.now(), lock: locked, fence, history, refusals, mayRelease };
}

async function lockView(lock: WatchedLock, watch: LockWatch | undefined, resource: string): Promise<LockView | Trouble> {
  try {
    const { state, holder = null, token, remainingMs: endsInMs = null, ballots } = await lock.inspect(resource);
    return { state, holder, token, endsInMs, seenForMs: watch?.seenForMs(resource, token) ?? null, nodes: ballots.map(answerOf) };
  } catch (error) {
    return { trouble: messageOf(error) };
  }
}

function answerOf(ballot: InspectBallot): NodeAnswer {
  const { node } = ballot;
  if (ballot.kind === "seen") return { node, holder: ballot.holder, endsInMs: ballot.remainingMs, token: ballot.token };
  const silent = ballot.kind === "unreachable" ? ballot.cause : (ballot.reason ?? "it may have forgotten what it stored");
  return { node, holder: null, endsInMs: null, token: null, silent };
}

async function fenceView(store: FencedStore, name: string): Promise<FenceView | Trouble | undefined> {
  const result = await store.read(name);
  if (result.kind === "unknown_resource") return undefined;
  if (result.kind === "unavailable") return { trouble: nothingKnown };
  const { token, rev, seq, holder, updatedAt, kind } = result;
  return { token, rev, seq, holder, updatedAt: updatedAt.getTime(), hasDocument: kind === "found" };
}

async function historyOf(store: FencedStore, resource: string): Promise<readonly HistoryRow[] | Trouble | undefined> {
  const result = await store.history({ resource, limit: MAX_ENTRIES });
  if (result.kind === "off") return undefined;
  if (result.kind === "unavailable") return { trouble: nothingKnown };
  return result.entries.map(({ rev, op, token, holder, at }) => ({ rev, op, token, holder, at: at.getTime() }));
}

async function keptRefusals(store: FencedStore, resource: string): Promise<readonly RefusalRow[]> {
  const result = await store.refusals?.read({ prefix: resource, limit: MAX_ENTRIES });
  if (result?.kind !== "refused_page") return [];
  const own = result.entries.filter((entry) => entry.resource === resource);
  return own.map(({ id, at, code, presentedToken, currentToken, caller }) => {
    return { id: -id, at: at.getTime(), resource, code, presentedToken, currentToken, caller, address: "", requestId: "" };
  });
}

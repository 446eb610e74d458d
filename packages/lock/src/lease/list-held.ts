// What is held now: the leases that each node stores, and what a quorum of them says together.
// Changes nothing.
import { LockError } from "../protocol/errors.js";
import type { Asked, StoredLease, StoredLeases } from "../protocol/fleet.js";
import type { HeldResource, HeldResources } from "../protocol/inspection.js";
import type { LeaseContext } from "./context.js";
import { inspectAll, summarize } from "./inspect.js";
import { describeBallots } from "./messages.js";

/** So many are asked about at once; their questions share round trips. */
const AT_ONCE = 256;

/** The answers, of at least a quorum. */
export function answersOf<Answer>(context: LeaseContext, what: string, asked: readonly Asked<Answer>[]): readonly Answer[] {
  const { size, quorum } = context.policy;
  const answers = asked.flatMap((node) => (node.kind === "answered" ? [node.answer] : []));
  if (answers.length >= quorum) return answers;
  const ballots = asked.filter((node) => node.kind === "unreachable");
  const nodes = context.fleet === undefined ? "nodes" : `nodes of fleet ${context.fleet}`;
  const message = `${answers.length} of ${size} ${nodes} answered ${what}, ${quorum} needed; ${describeBallots(ballots, context)}`;
  throw new LockError("LOCK_NO_QUORUM", message, { resources: [], ballots });
}

/**
 * The first of them in the order of their names. The nodes were listed one after the other, so what
 * they do not agree on is asked again, of all at once.
 */
export async function heldResources(context: LeaseContext, asked: readonly Asked<StoredLeases>[], limit: number): Promise<HeldResources> {
  const lists = answersOf(context, "what is held", asked);
  const cost = {
    silent: asked.flatMap(({ kind, node }) => (kind === "answered" ? [] : [node])),
    steps: Math.max(...lists.map(({ steps }) => steps)),
  };
  const known = new Set<string>();
  for (const { leases } of lists) for (const name of leases.keys()) known.add(name);
  const names = [...known].sort();
  const isWhole = lists.every((list) => list.isWhole);
  const held: HeldResource[] = [];
  for (let start = 0; start < names.length; start += AT_ONCE) {
    const some = names.slice(start, start + AT_ONCE);
    const found = await Promise.all(some.map((name) => agreed(name, lists, context.policy.quorum) ?? askedAgain(context, name)));
    for (const one of found) if (one !== undefined) held.push(one);
    if (held.length > limit) return { held: held.slice(0, limit), more: true, ...cost };
  }
  return { held, more: !isWhole, ...cost };
}

/** Undefined where no owner in the lists has a quorum. */
function agreed(resource: string, lists: readonly StoredLeases[], quorum: number): HeldResource | undefined {
  const stored: StoredLease[] = [];
  let token = 0;
  for (const { leases } of lists) {
    const lease = leases.get(resource);
    if (lease === undefined) continue;
    stored.push(lease);
    if (lease.token > token) token = lease.token;
  }
  // A holder whom a quorum of them has is one of these.
  for (const { owner, holder } of stored.slice(0, stored.length - quorum + 1)) {
    const remaining = stored.flatMap((lease) => (lease.owner === owner ? [lease.remainingMs] : []));
    const remainingMs = remaining.sort((a, b) => b - a)[quorum - 1];
    if (remainingMs !== undefined) return { resource, state: "held", holder, remainingMs, token };
  }
  return undefined;
}

async function askedAgain(context: LeaseContext, resource: string): Promise<HeldResource | undefined> {
  const { state, ballots: _, ...found } = summarize(resource, await inspectAll(context, resource), context.policy);
  return state === "free" ? undefined : { ...found, state };
}

// Raises a resource's counter on a quorum without owning the resource: read repair for `issued`,
// and fencing the holder for `forceRelease`. Never lowers anything.
import { type EpochMoved, type InspectBallot, LockError, type RaiseBallot } from "../protocol/ballot.js";
import { channels } from "../protocol/events.js";
import type { ForcedRelease, ForceReleaseOptions, Inspection } from "../protocol/fleet.js";
import type { QuestionOf } from "../protocol/verbs.js";
import { askAll, type Ballots, castBallots, noBallots, type QuorumRule } from "../quorum.js";
import { inspectAll, inspectUntil, summarize, tooFewSaw } from "./inspect.js";
import { describeBallots } from "./messages.js";
import type { LockerState } from "./state.js";

/** An admission changes every epoch once. */
const MAX_TRIES = 4;

/**
 * - `stored`: a quorum stores this token or a higher one.
 * - `unissued`: a quorum does not: no lease has it, for a lease's token is stored on a quorum.
 * - `partly`: a quorum answered, and neither is true.
 * - `silent`: fewer than a quorum answered.
 */
type StoredVerdict = "stored" | "unissued" | "partly" | "silent" | "open";

/** Is this token stored where every later lease meets it? */
export function tallyStored(token: number, ballots: Ballots<InspectBallot>, { size, quorum }: QuorumRule): StoredVerdict {
  let storing = 0;
  let without = 0;
  let open = 0;
  for (let i = 0; i < size; i++) {
    const ballot = ballots[i];
    if (ballot === undefined) open++;
    else if (ballot.kind === "seen" && ballot.token >= token) storing++;
    else if (ballot.kind === "seen") without++;
  }
  if (storing >= quorum) return "stored";
  if (without >= quorum) return "unissued";
  if (open > 0) return "open";
  return storing + without >= quorum ? "partly" : "silent";
}

/**
 * Whether this token, or a higher one, was issued for the resource. If a quorum stores it, yes; if
 * a quorum does not, no lease has it. Where too few answered for either, it is raised on a quorum
 * first, so that a token that is accepted here is below that of every later lease.
 */
export async function wasIssued(locker: LockerState, resource: string, token: number): Promise<boolean> {
  const { policy } = locker;
  const judge = (cast: Ballots<InspectBallot>): StoredVerdict => tallyStored(token, cast, policy);
  const { verdict, ballots } = await inspectUntil<Exclude<StoredVerdict, "open">>(locker, resource, judge);
  if (verdict === "silent") throw tooFewSaw(resource, ballots, locker);
  if (verdict === "partly") await raiseOnQuorum(locker, { resources: [resource], token });
  return verdict !== "unissued";
}

/**
 * A token that no lease granted so far exceeds: a lease's token is stored on a majority, of which
 * the nodes that did not answer may be a part; or `atLeast`, if that is higher. Where fewer than a
 * quorum store that number, it is raised there, so that every later lease is above it.
 */
export async function highestToken(locker: LockerState, resource: string, atLeast: number): Promise<number> {
  const { policy } = locker;
  const ballots = await inspectAll(locker, resource);
  const tokens = ballots.flatMap((ballot) => (ballot.kind === "seen" ? [ballot.token] : [])).sort((a, b) => b - a);
  if (tokens.length < policy.quorum) throw tooFewSaw(resource, ballots, locker);
  const majority = Math.floor(policy.size / 2) + 1;
  const rank = Math.max(1, majority - (policy.size - tokens.length));
  const token = Math.max(tokens[rank - 1] ?? 0, atLeast);
  const storing = tokens.filter((stored) => stored >= token).length;
  if (storing < policy.quorum) await raiseOnQuorum(locker, { resources: [resource], token });
  return token;
}

/**
 * On each node the holder that was seen there is removed and the counter raised past all that was
 * seen, in one step: a holder that still believes in its lease is fenced as well as unlocked, even
 * if no lease is taken after it. A node that another has taken since then does neither.
 */
export async function forceRelease(locker: LockerState, resource: string, { reason, token }: ForceReleaseOptions): Promise<ForcedRelease> {
  const removed = new Set<string>();
  for (let tries = 1; ; tries++) {
    const { policy } = locker;
    const looks = await inspectAll(locker, resource);
    const before = summarize(resource, looks, policy);
    const seen = looks.filter((look) => look.kind === "seen");
    if (seen.length < policy.quorum) throw tooFewSaw(resource, looks, locker);
    // Stored on a quorum, a higher token would leave only so many nodes below it.
    const isLater = token !== undefined && seen.filter((look) => look.token <= token).length <= policy.size - policy.quorum;
    if (token !== undefined && (isLater || before.state === "free")) throw notHeldBy(before, token);
    const fence = Math.max(...seen.map((look) => look.token)) + 1;
    const holders = new Map(seen.map(({ node, owner }) => [node, owner]));
    const ballots = await raiseOnQuorum(locker, { resources: [resource], token: fence }, holders);
    for (const ballot of ballots) if (ballot.kind === "raised" && ballot.removed !== null) removed.add(ballot.removed);
    if (ballots.filter(({ kind }) => kind === "raised").length >= policy.quorum) {
      const done = { before, removed: [...removed], fence, ballots };
      if (channels.forceRelease.hasSubscribers) channels.forceRelease.publish({ resource, reason, fence, removed: done.removed });
      return done;
    }
    if (tries >= MAX_TRIES)
      throw new LockError("LOCK_HELD", `${resource} went from holder to holder, and none was removed`, { resources: [resource] });
  }
}

function notHeldBy({ resource, state, holder = "nobody who has a quorum", ballots }: Inspection, token: number): LockError {
  const now = state === "free" ? "nobody holds it any more" : `it is held by ${holder} under another token by now`;
  return new LockError("LEASE_LOST", `${resource} was not taken from the lease with token ${token}: ${now}`, {
    resources: [resource],
    ballots,
  });
}

/**
 * Raises on every node; resolves when all have answered, rejects with LOCK_NO_QUORUM if fewer than
 * a quorum did it in the epoch in which it began. With the holders to be removed, by node: also
 * resolves where another has it on some of them.
 */
async function raiseOnQuorum(
  locker: LockerState,
  question: Omit<QuestionOf<"raise">, "holder">,
  holders?: ReadonlyMap<string, string | null>,
): Promise<readonly RaiseBallot[]> {
  for (let tries = 1; ; tries++) {
    const { nodes, policy } = locker;
    const { quorum, size } = policy;
    const cast = noBallots<RaiseBallot | EpochMoved>(nodes.length);
    await askAll<RaiseBallot | EpochMoved, "all">(locker, {
      question: "raise",
      resources: question.resources,
      epochs: nodes.map((node) => node.epoch()),
      ballots: cast,
      ask: (node) => node.ask("raise", holders === undefined ? question : { ...question, holder: holders.get(node.name) ?? null }),
      judge: (ballots) => (castBallots(ballots).length === nodes.length ? "all" : "open"),
    });
    const ballots = castBallots(cast);
    const others = ballots.filter(({ kind }) => kind !== "raised");
    const raised = ballots.length - others.length;
    const answered = raised + others.filter(({ kind }) => kind === "kept").length;
    if (answered >= quorum) return ballots.filter((ballot) => ballot.kind !== "epoch_moved");
    const moved = others.filter(({ kind }) => kind === "epoch_moved").length;
    if (answered + moved >= quorum && tries < MAX_TRIES) continue;
    const message = `${raised} of ${size} nodes raised the token of ${question.resources[0]} to ${question.token}, ${quorum} needed; ${describeBallots(others, locker)}`;
    throw new LockError("LOCK_NO_QUORUM", message, { resources: question.resources, ballots });
  }
}

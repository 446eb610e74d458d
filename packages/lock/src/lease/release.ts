// Gives back a lease, or what a lost acquisition was granted. A release travels behind the request
// that it undoes, so that request need not have been answered yet.
import type { Ballot, EpochMoved, GrantBallot, ReleaseBallot } from "../protocol/ballot.js";
import { type OpenSpan, type SpanSubject, tracing } from "../protocol/events.js";
import type { Release } from "../protocol/locker.js";
import type { Ownership, ReleaseQuestion } from "../protocol/verbs.js";
import { askAll, type Ballots, castBallots, noBallots, type QuorumRule, type Voters } from "../quorum.js";
import { lineOf } from "./local-queue.js";
import type { LockerState } from "./state.js";

/**
 * `free`: a quorum does not have it any more. `unconfirmed`: too few nodes could be told; the keys
 * there run out by themselves.
 */
export type ReleaseVerdict = "free" | "unconfirmed" | "open";

/**
 * `ticket`: the one that won it, if one did. `grants`: how the members answered, where they were
 * asked for it once and never again.
 */
export type Releasing = Ownership & SpanSubject & Pick<ReleaseQuestion, "ticket"> & { readonly grants?: Ballots<Ballot> | undefined };

/**
 * A held lease, on all nodes: resolves when a quorum does not have it any more, or when too few can
 * be told. The next in the queue is told.
 */
export async function releaseEverywhere(locker: LockerState, lease: Releasing, hold?: OpenSpan): Promise<Release> {
  const { nodes, policy } = locker;
  const { resources, owner } = lease;
  const { callers } = locker;
  const line = lineOf(resources);
  // Its claim, which gives the lease back as well, travels in front of the release: where that comes
  // first, the lock goes to others.
  callers.released(line, owner);
  const span = tracing.spans?.begin("release", lease, hold);
  // The ticket of another caller of this process that waits by now has the same name.
  const isWanted = lease.ticket !== undefined && callers.isOccupied(line);
  const ticket = isWanted ? undefined : lease.ticket;
  const question = { resources, owner, tells: true, ticket };
  // A node that nothing was sent to has nothing to give back, but for the ticket of a claim before.
  const grants = lease.ticket === undefined ? lease.grants : undefined;
  const ballots = grants?.map(absentAt) ?? noBallots<ReleaseBallot>(nodes.length);
  const outcome = await askAll<ReleaseBallot, Exclude<ReleaseVerdict, "open">>(locker, {
    question: "release",
    resources,
    ballots,
    ask: (node) => node.ask("release", question),
    judge: (cast) => tallyReleases(cast, policy),
  });
  span?.end({ outcome, isFailure: outcome !== "free" });
  return { outcome, ballots: castBallots(ballots) };
}

function absentAt(grant: Ballot | undefined): ReleaseBallot | undefined {
  return grant?.kind === "unreachable" && grant.unsent ? { kind: "absent", node: grant.node } : undefined;
}

export function tallyReleases(ballots: Ballots<ReleaseBallot>, { size, quorum }: QuorumRule): ReleaseVerdict {
  let gone = 0;
  let open = 0;
  for (let i = 0; i < size; i++) {
    const kind = ballots[i]?.kind;
    if (kind === "released" || kind === "absent") gone++;
    else if (kind === undefined) open++;
  }
  if (gone >= quorum) return "free";
  return gone + open >= quorum ? "open" : "unconfirmed";
}

/**
 * After a lost acquisition: on every node that granted, and on every one that may still do so. Not
 * waited for: a node that cannot be told now is told when it comes back. Those that wait are told
 * only of a whole lock: what a minority had granted is of no use. Sent before the next acquisition,
 * which must not find what is left of this one.
 */
export function giveBack(voters: Voters, question: ReleaseQuestion, grants: Ballots<GrantBallot | EpochMoved>): void {
  releaseOn(voters, question, (i) => mayHaveGranted(grants[i]));
}

/**
 * After a lost acquisition of one that waits from now on: where none has granted, those that have
 * not answered yet will hardly. The returned function, to be called with each, gives back
 * what its answer says it granted. It comes within nodeTimeoutMs, if only as silence.
 */
export function giveBackAsAnswered(...lost: Parameters<typeof giveBack>): ((node: number) => void) | undefined {
  const [voters, question, grants] = lost;
  if (grants.some((ballot) => ballot?.kind === "granted" || ballot?.kind === "epoch_moved")) {
    giveBack(...lost);
    return undefined;
  }
  releaseOn(voters, question, (i) => grants[i] !== undefined && mayHaveGranted(grants[i]));
  return (node) => releaseOn(voters, question, (i) => i === node && mayHaveGranted(grants[i]));
}

/** A node that refused this owner has nothing of it. */
function mayHaveGranted(ballot: GrantBallot | EpochMoved | undefined): boolean {
  if (ballot?.kind === "held" || ballot?.kind === "quarantined") return false;
  return ballot?.kind !== "unreachable" || !ballot.unsent;
}

/** On the nodes, by index, that may have keys of this owner. Not waited for. */
export function releaseOn({ inFlight, nodes }: Voters, question: ReleaseQuestion, mayHaveKeys: (node: number) => boolean): void {
  for (const [i, node] of nodes.entries()) {
    if (!mayHaveKeys(i)) continue;
    inFlight.begin();
    void node.ask("release", question).then(() => inFlight.end());
  }
}

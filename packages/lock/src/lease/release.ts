// Gives a lease, or what an attempt took, back on the nodes. A release travels behind the question that it undoes, so nothing needs to have been answered yet.
import type { EpochMoved, GrantBallot, ReleaseBallot } from "../protocol/ballot.js";
import type { Release } from "../protocol/lease.js";
import type { Ownership } from "../protocol/node.js";
import { castBallots, holdRound } from "../quorum/round.js";
import { type Ballots, type ReleaseVerdict, tallyReleases } from "../quorum/tally.js";
import type { LeaseContext } from "./context.js";

/** A held lease, on all nodes: answers when a quorum has it no longer, or when too few can be told. The token says whose turn is next. */
export async function releaseEverywhere(core: LeaseContext, lease: Ownership & { readonly token: number }): Promise<Release> {
  const { resources, owner, token } = lease;
  const question = { resources, owner, turn: token };
  const ballots: (ReleaseBallot | undefined)[] = new Array(core.nodes.length).fill(undefined);
  core.work.begin();
  const verdict = await holdRound<ReleaseBallot, Exclude<ReleaseVerdict, "open">>({
    question: "release",
    resources,
    nodes: core.nodes,
    ballots,
    ask: (node) => node.release(question),
    judge: (cast) => tallyReleases(cast, core.policy),
    complete: () => core.work.end(),
  });
  core.onReleased(resources, ballots);
  return { outcome: verdict, ballots: castBallots(ballots) };
}

/**
 * After a lost attempt: on every node that granted, and on every one that may still do so. A node that said no to this owner has nothing of it. Nobody waits for
 * the answers: a node that cannot be told now is told when it comes back. No waiter is woken (turn 0): a part of the lock is of no use to it.
 */
export function giveBack(core: LeaseContext, { resources, owner }: Ownership, grants: Ballots<GrantBallot | EpochMoved>): void {
  const question = { resources, owner, turn: 0 };
  for (const [i, node] of core.nodes.entries()) {
    const ballot = grants[i];
    if (ballot?.kind === "held" || ballot?.kind === "quarantined") continue;
    if (ballot?.kind === "unreachable" && ballot.unsent) continue;
    core.work.begin();
    void node.release(question).then(() => core.work.end());
  }
}

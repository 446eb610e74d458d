// Gives a lease, or what an attempt took, back on the nodes. A release travels behind the question that it undoes, so nothing needs to have been answered yet.
import type { EpochMoved, GrantBallot, ReleaseBallot } from "./ballot.js";
import type { Core } from "./core.js";
import type { Release } from "./lease.js";
import type { Ownership } from "./node/lock-node.js";
import { castBallots, holdRound } from "./quorum/round.js";
import { type Ballots, type ReleaseVerdict, tallyReleases } from "./quorum/tally.js";

/** On all nodes; answers when a quorum has it no longer, or when too few can be told. */
export async function releaseEverywhere(core: Core, ownership: Ownership): Promise<Release> {
  const { resources } = ownership;
  const ballots: (ReleaseBallot | undefined)[] = new Array(core.nodes.length).fill(undefined);
  core.work.begin();
  const verdict = await holdRound<ReleaseBallot, Exclude<ReleaseVerdict, "open">>({
    question: "release",
    resources,
    nodes: core.nodes,
    ballots,
    ask: (node) => node.release(ownership),
    judge: (cast) => tallyReleases(cast, core.policy),
    complete: () => core.work.end(),
  });
  core.courtesy.released(resources, ballots);
  return { outcome: verdict, ballots: castBallots(ballots) };
}

/**
 * After a lost attempt: on every node that granted, and on every one that may still do so. A node that said no to this owner has nothing of it. Nobody waits for
 * the answers: a node that cannot be told now is told when it comes back.
 */
export function giveBack(core: Core, ownership: Ownership, grants: Ballots<GrantBallot | EpochMoved>): void {
  for (const [i, node] of core.nodes.entries()) {
    const kind = grants[i]?.kind;
    if (kind === "held" || kind === "quarantined") continue;
    core.work.begin();
    void node.release(ownership).then(() => core.work.end());
  }
}

// Asks the nodes whether a lease is still ours and to hold it longer: renewed | lost | unknown. It never creates a key by itself; a node that lost ours gets it
// again only after a quorum confirmed in this very round that we are the owner (heal). What the answer means for the lease is held-lease.ts's business.
import type { ExtendBallot } from "../protocol/ballot.js";
import { castBallots, holdRound } from "../quorum/round.js";
import { type RenewalVerdict, tallyExtensions } from "../quorum/tally.js";
import type { LeaseContext } from "./context.js";

export interface RenewalQuestion {
  readonly resources: readonly string[];
  readonly owner: string;
  readonly token: number;
  readonly ttlMs: number;
  /** Whether the holder still wants it, and has not asked anew since: asked again before anything is planted. */
  wanted(): boolean;
}

export interface RenewalAnswer {
  readonly verdict: Exclude<RenewalVerdict, "open">;
  readonly ballots: readonly ExtendBallot[];
}

export async function renew(core: LeaseContext, question: RenewalQuestion): Promise<RenewalAnswer> {
  const { resources, owner, ttlMs } = question;
  const ballots: (ExtendBallot | undefined)[] = new Array(core.nodes.length).fill(undefined);
  let verdict: RenewalVerdict = "open";
  const startAt = core.clock.monotonicMs();
  core.work.begin();
  verdict = await holdRound<ExtendBallot, Exclude<RenewalVerdict, "open">>({
    question: "extend",
    resources,
    nodes: core.nodes,
    ballots,
    ask: (node) => node.extend({ resources, owner, ttlMs }),
    judge: (cast) => {
      verdict = tallyExtensions(cast, core.policy);
      return verdict;
    },
    complete: () => {
      if (verdict === "renewed" && question.wanted())
        heal(core, { ...question, ttlMs: Math.floor(startAt + ttlMs - core.clock.monotonicMs()) }, ballots);
      core.work.end();
    },
  });
  return { verdict, ballots: castBallots(ballots) };
}

// The answer is not waited for: a heal that fails leaves things as they were, and the next renewal sees it. The key is planted for what is left of the ttl, not for a
// whole one: it shall not outlive the others by the time that the slowest node took to answer.
function heal(core: LeaseContext, question: RenewalQuestion, ballots: readonly (ExtendBallot | undefined)[]): void {
  if (question.ttlMs < 1) return;
  for (const [i, node] of core.nodes.entries()) {
    if (ballots[i]?.kind !== "missing") continue;
    const { resources, owner, token, ttlMs } = question;
    core.work.begin();
    void node.heal({ resources, owner, token, ttlMs, label: core.policy.label }).then(() => core.work.end());
  }
}

// Looks at a resource without touching it: what each node knows, and what a quorum of them says together. Pure but for the round it holds.

import type { Policy } from "../options/policy.js";
import type { InspectBallot } from "../protocol/ballot.js";
import { LockError } from "../protocol/errors.js";
import type { Inspection } from "../protocol/locker.js";
import { castBallots, holdRound } from "../quorum/round.js";
import type { Ballots, Electorate } from "../quorum/tally.js";
import type { LeaseContext } from "./context.js";
import { describeBallots } from "./messages.js";

type Seen = Extract<InspectBallot, { kind: "seen" }>;

/** Asks every node and waits for all of them: whoever looks wants to see. */
export async function survey(core: LeaseContext, resource: string): Promise<readonly InspectBallot[]> {
  const everybody = core.nodes.length;
  return (await look(core, resource, (ballots) => (castBallots(ballots).length === everybody ? "all" : "open"))).ballots;
}

/** Asks every node until the judge has heard enough. */
export async function look<Verdict extends string>(
  core: LeaseContext,
  resource: string,
  judge: (ballots: Ballots<InspectBallot>) => Verdict | "open",
): Promise<{ readonly verdict: Verdict; readonly ballots: readonly InspectBallot[] }> {
  const ballots: (InspectBallot | undefined)[] = new Array(core.nodes.length).fill(undefined);
  core.work.begin();
  const verdict = await holdRound<InspectBallot, Verdict>({
    question: "inspect",
    resources: [resource],
    nodes: core.nodes,
    ballots,
    ask: (node) => node.inspect(resource),
    judge,
    complete: () => core.work.end(),
  });
  return { verdict, ballots: castBallots(ballots) };
}

/** What the ballots say together. */
export function conclude(resource: string, ballots: readonly InspectBallot[], { size, quorum }: Electorate): Inspection {
  const seen = ballots.filter((ballot): ballot is Seen => ballot.kind === "seen");
  const base = { resource, token: seen.reduce((highest, { token }) => Math.max(highest, token), 0), ballots };
  if (seen.filter(({ holder }) => holder === null).length >= quorum) return { ...base, state: "free" };
  for (const { owner, holder } of seen) {
    if (holder === null) continue;
    const remaining = seen.filter((ballot) => ballot.owner === owner).map((ballot) => ballot.remainingMs ?? 0);
    // A quorum has it until the first of the quorum's longest-lived keys runs out.
    const remainingMs = remaining.sort((a, b) => b - a)[quorum - 1];
    if (remainingMs !== undefined) return { ...base, state: "held", holder, remainingMs };
  }
  const unseen = size - seen.length;
  const canBeEither = [null, ...seen.map(({ owner }) => owner)].some(
    (who) => seen.filter(({ owner }) => owner === who).length + unseen >= quorum,
  );
  return { ...base, state: canBeEither ? "unknown" : "split" };
}

/** What is thrown when too few nodes answered to prove anything. */
export function tooFewSaw(resource: string, ballots: readonly InspectBallot[], policy: Policy): LockError {
  const seen = ballots.filter((ballot) => ballot.kind === "seen").length;
  const silent = describeBallots(ballots.filter((ballot) => ballot.kind !== "seen"));
  const message = `${seen} of ${policy.size} nodes answered what they know of ${resource}, ${policy.quorum} needed; ${silent}`;
  return new LockError("LOCK_NO_QUORUM", message, { resources: [resource], ballots });
}

// What each node stores of a resource, and what a quorum of them says together. Changes nothing.
import type { InspectBallot } from "../protocol/ballot.js";
import type { Leader } from "../protocol/campaign.js";
import { LockError } from "../protocol/errors.js";
import type { Fleet } from "../protocol/fleet.js";
import type { Inspection, NodeInspection } from "../protocol/inspection.js";
import { askAll, type Ballots, castBallots, noBallots } from "../quorum/round.js";
import type { QuorumRule } from "../quorum/tally.js";
import type { LeaseContext } from "./context.js";
import { describeBallots, type Teller } from "./messages.js";

type Seen = Extract<InspectBallot, { kind: "seen" }>;

/** Asks every node and waits for all of them. */
export async function inspectAll(context: LeaseContext, resource: string): Promise<readonly InspectBallot[]> {
  const { size } = context.policy;
  return (await inspectUntil(context, resource, (ballots) => (castBallots(ballots).length === size ? "all" : "open"))).ballots;
}

/** Asks every node until the judge gives a verdict. */
export async function inspectUntil<Verdict extends string>(
  context: LeaseContext,
  resource: string,
  judge: (ballots: Ballots<InspectBallot>) => Verdict | "open",
): Promise<{ readonly verdict: Verdict; readonly ballots: readonly InspectBallot[] }> {
  const ballots = noBallots<InspectBallot>(context.nodes.length);
  const verdict = await askAll<InspectBallot, Verdict>(context, {
    question: "inspect",
    resources: [resource],
    ballots,
    ask: (node) => node.inspect(resource),
    judge,
  });
  return { verdict, ballots: castBallots(ballots) };
}

/** How each node stands. Of a name that nobody uses, it says nothing but whether it votes. */
export async function inspectNodes(context: LeaseContext, fleet: Pick<Fleet, "report">): Promise<readonly NodeInspection[]> {
  const { nodes, clock } = context;
  const ballots = await inspectAll(context, `palisade/nodes/${clock.secret()}`);
  // A node that is silent would keep the others waiting for as long as a connection may take.
  const reports = await fleet.report(new Set(ballots.flatMap(({ kind, node }) => (kind === "unreachable" ? [] : [node]))));
  return nodes.flatMap(({ name: node, address }): NodeInspection[] => {
    const ballot = ballots.find((cast) => cast.node === node);
    const report = reports.find((asked) => asked.node === node);
    if (ballot === undefined) return [];
    const base = { node, address, ...stateIn(ballot) };
    if (report === undefined) return [base];
    return [report.kind === "answered" ? { ...base, ...report.answer } : { ...base, hidden: report.cause }];
  });
}

function stateIn(ballot: InspectBallot): Pick<NodeInspection, "state" | "reason" | "readyInMs"> {
  if (ballot.kind === "seen") return { state: "votes" };
  if (ballot.kind === "unreachable") return { state: "silent", reason: ballot.cause };
  const { readyInMs, reason } = ballot;
  return { state: "waits", ...(readyInMs === undefined ? {} : { readyInMs }), ...(reason === undefined ? {} : { reason }) };
}

/** What the ballots say together. */
export function summarize(resource: string, ballots: readonly InspectBallot[], { size, quorum }: QuorumRule): Inspection {
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
    (candidate) => seen.filter(({ owner }) => owner === candidate).length + unseen >= quorum,
  );
  return { ...base, state: canBeEither ? "unknown" : "split" };
}

/** Who leads, if a quorum has it. Throws LOCK_NO_QUORUM if that cannot be told. */
export function leaderIn({ state, holder, token, remainingMs, resource, ballots }: Inspection, teller: Teller): Leader | null {
  if (state === "unknown") throw tooFewSaw(resource, ballots, teller);
  return state === "held" && holder !== undefined ? { label: holder, token, remainingMs: remainingMs ?? 0 } : null;
}

/** Thrown when too few nodes answered to prove anything. */
export function tooFewSaw(resource: string, ballots: readonly InspectBallot[], teller: Teller): LockError {
  const { size, quorum } = teller.policy;
  const seen = ballots.filter((ballot) => ballot.kind === "seen").length;
  const silent = describeBallots(
    ballots.filter((ballot) => ballot.kind !== "seen"),
    teller,
  );
  const message = `${seen} of ${size} nodes answered what they know of ${resource}, ${quorum} needed; ${silent}`;
  return new LockError("LOCK_NO_QUORUM", message, { resources: [resource], ballots });
}

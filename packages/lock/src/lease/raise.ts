// Raises a resource's counter on a quorum without owning the resource: read repair for `issued`,
// and fencing the holder for `forceRelease`. Never lowers anything.
import { type EpochMoved, type InspectBallot, LockError, type RaiseBallot } from "../protocol/ballot.js";
import { channels } from "../protocol/events.js";
import type { ForcedRelease } from "../protocol/fleet.js";
import type { QuestionOf } from "../protocol/verbs.js";
import { askAll, type Ballots, castBallots, noBallots, type QuorumRule } from "../quorum.js";
import { inspectAll, inspectUntil, summarize, tooFewSaw } from "./inspect.js";
import { describeBallots } from "./messages.js";
import type { LockerState } from "./state.js";

type Raise = QuestionOf<"raise">;

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
  if (verdict === "partly") await raiseOnQuorum(locker, { resources: [resource], token, remove: "nothing" });
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
  if (storing < policy.quorum) await raiseOnQuorum(locker, { resources: [resource], token, remove: "nothing" });
  return token;
}

/**
 * First the token is raised past the holder's on a quorum, then the holder is removed: a holder
 * that still believes in its lease is fenced as well as unlocked, even if no lease is taken after
 * it.
 */
export async function forceRelease(locker: LockerState, resource: string, reason: string): Promise<ForcedRelease> {
  const { policy } = locker;
  const ballots = await inspectAll(locker, resource);
  const before = summarize(resource, ballots, policy);
  if (ballots.filter(({ kind }) => kind === "seen").length < policy.quorum) throw tooFewSaw(resource, ballots, locker);
  const least = before.token + 1;
  await raiseOnQuorum(locker, { resources: [resource], token: least, remove: "nothing" });
  const raised = await raiseOnQuorum(locker, { resources: [resource], token: least, remove: "holder" });
  const removed = new Set<string>();
  for (const ballot of raised) if (ballot.kind === "raised" && ballot.removed !== null) removed.add(ballot.removed);
  // A lease taken after the inspection may have been given the very number of the first raise, and
  // then have been removed as well.
  const fence = removed.size === 0 ? least : Math.max(...raised.map((ballot) => (ballot.kind === "raised" ? ballot.token : 0))) + 1;
  if (fence > least) await raiseOnQuorum(locker, { resources: [resource], token: fence, remove: "nothing" });
  const done = { before, removed: [...removed], fence, ballots: raised };
  if (channels.forceRelease.hasSubscribers) channels.forceRelease.publish({ resource, reason, fence, removed: done.removed });
  return done;
}

/**
 * Raises on every node; resolves when all have answered, rejects with LOCK_NO_QUORUM if fewer than
 * a quorum did it in the epoch in which it began.
 */
async function raiseOnQuorum(locker: LockerState, question: Raise): Promise<readonly RaiseBallot[]> {
  for (let tries = 1; ; tries++) {
    const { quorum, size } = locker.policy;
    const ballots = castBallots(await raiseOnce(locker, question));
    const raised = ballots.filter(({ kind }) => kind === "raised").length;
    if (raised >= quorum) return ballots.filter((ballot) => ballot.kind !== "epoch_moved");
    const moved = ballots.filter(({ kind }) => kind === "epoch_moved").length;
    if (raised + moved >= quorum && tries < MAX_TRIES) continue;
    const others = describeBallots(
      ballots.filter(({ kind }) => kind !== "raised"),
      locker,
    );
    const message = `${raised} of ${size} nodes raised the token of ${question.resources[0]} to ${question.token}, ${quorum} needed; ${others}`;
    throw new LockError("LOCK_NO_QUORUM", message, { resources: question.resources, ballots });
  }
}

async function raiseOnce(locker: LockerState, question: Raise): Promise<Ballots<RaiseBallot | EpochMoved>> {
  const { nodes } = locker;
  const ballots = noBallots<RaiseBallot | EpochMoved>(nodes.length);
  await askAll<RaiseBallot | EpochMoved, "all">(locker, {
    question: "raise",
    resources: question.resources,
    epochs: nodes.map((node) => node.epoch()),
    ballots,
    ask: (node) => node.ask("raise", question),
    judge: (cast) => (castBallots(cast).length === nodes.length ? "all" : "open"),
  });
  return ballots;
}

// Raises a resource's counter on a quorum without owning it: read repair for `issued`, and breaking the glass for `forceRelease`. Never lowers anything.

import type { EpochMoved, RaiseBallot } from "../protocol/ballot.js";
import { LockError } from "../protocol/errors.js";
import { channels } from "../protocol/events.js";
import type { ForcedRelease } from "../protocol/locker.js";
import { castBallots, holdRound } from "../quorum/round.js";
import { type Ballots, type StoredVerdict, tallyStored } from "../quorum/tally.js";
import type { LeaseContext } from "./context.js";
import { conclude, look, survey, tooFewSaw } from "./inspect.js";
import { describeBallots } from "./messages.js";

interface Raise {
  readonly resource: string;
  readonly token: number;
  readonly remove: "holder" | "nothing";
}

/** An admission moves every epoch once. */
const EPOCH_TRIES = 4;

/** Raises on every node; resolves when all have answered, rejects with LOCK_NO_QUORUM if fewer than a quorum did it in the epoch in which it began. */
async function raiseOnQuorum(core: LeaseContext, question: Raise): Promise<readonly RaiseBallot[]> {
  const { quorum, size } = core.policy;
  for (let tries = 1; ; tries++) {
    const ballots = castBallots(await raiseOnce(core, question));
    const raised = ballots.filter(({ kind }) => kind === "raised").length;
    if (raised >= quorum) return ballots.filter((ballot) => ballot.kind !== "epoch_moved");
    const moved = ballots.filter(({ kind }) => kind === "epoch_moved").length;
    if (raised + moved >= quorum && tries < EPOCH_TRIES) continue;
    const others = describeBallots(ballots.filter(({ kind }) => kind !== "raised"));
    const message = `${raised} of ${size} nodes raised the token of ${question.resource} to ${question.token}, ${quorum} needed; ${others}`;
    throw new LockError("LOCK_NO_QUORUM", message, { resources: [question.resource], ballots });
  }
}

async function raiseOnce(core: LeaseContext, question: Raise): Promise<Ballots<RaiseBallot | EpochMoved>> {
  const { nodes } = core;
  const epochs = nodes.map((node) => node.epoch());
  const ballots: (RaiseBallot | EpochMoved | undefined)[] = new Array(nodes.length).fill(undefined);
  core.work.begin();
  await holdRound<RaiseBallot | EpochMoved, "all">({
    question: "raise",
    resources: [question.resource],
    nodes,
    ballots,
    ask: (node) => node.raise(question),
    accept: (ballot, i) => (ballot.kind === "raised" && ballot.epoch !== epochs[i] ? { kind: "epoch_moved", node: ballot.node } : ballot),
    judge: (cast) => (castBallots(cast).length === nodes.length ? "all" : "open"),
    complete: () => core.work.end(),
  });
  return ballots;
}

/**
 * Whether this token, or a higher one, was issued for the resource. If a quorum stores it, yes; if a quorum does not, no lease has it. Where too few answered for
 * either, it is raised on a quorum first, so that a token that was accepted here is below that of every later lease.
 */
export async function wasIssued(core: LeaseContext, resource: string, token: number): Promise<boolean> {
  const { verdict, ballots } = await look<Exclude<StoredVerdict, "open">>(core, resource, (cast) => tallyStored(token, cast, core.policy));
  if (verdict === "silent") throw tooFewSaw(resource, ballots, core.policy);
  if (verdict === "partly") await raiseOnQuorum(core, { resource, token, remove: "nothing" });
  return verdict !== "unissued";
}

/**
 * First the token is raised past the holder's on a quorum, then the holder is removed: a holder who still believes in its lease is not only unlocked but fenced, even if
 * nobody takes the lock after it.
 */
export async function forceRelease(core: LeaseContext, resource: string, reason: string): Promise<ForcedRelease> {
  const ballots = await survey(core, resource);
  const before = conclude(resource, ballots, core.policy);
  if (ballots.filter(({ kind }) => kind === "seen").length < core.policy.quorum) throw tooFewSaw(resource, ballots, core.policy);
  const least = before.token + 1;
  await raiseOnQuorum(core, { resource, token: least, remove: "nothing" });
  const raised = await raiseOnQuorum(core, { resource, token: least, remove: "holder" });
  const removed = new Set<string>();
  for (const ballot of raised) if (ballot.kind === "raised" && ballot.removed !== null) removed.add(ballot.removed);
  // Who took the lock after we had looked may have been given the very number to which we raised, and then have been removed as well.
  const fence = removed.size === 0 ? least : Math.max(...raised.map((ballot) => (ballot.kind === "raised" ? ballot.token : 0))) + 1;
  if (fence > least) await raiseOnQuorum(core, { resource, token: fence, remove: "nothing" });
  const done = { before, removed: [...removed], fence, ballots: raised };
  if (channels.forceRelease.hasSubscribers) channels.forceRelease.publish({ resource, reason, fence, removed: done.removed });
  return done;
}

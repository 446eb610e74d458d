// What messages say: in one sentence what happened, with numbers, then what it means. For people
// only: programs go by the codes of errors, so wording may change.
import { type Policy, usualLabel } from "../options/policy.js";
import { type Ballot, type Held, type LeaseLostReason, LockError, type LockErrorCode, type LossReason } from "../protocol/ballot.js";
import type { FleetState } from "../protocol/fleet.js";
import { type LockerState, type Lost, retryAfterMs } from "./state.js";

/** The locker that tells it: names stand for nodes, and a holder may be this locker itself. */
export type Teller = Pick<LockerState, "nodes" | "policy">;

/** A lease of more resources is named by the first of them. */
const NAMED = 3;

const codes: Readonly<Record<LossReason, LockErrorCode>> = {
  held: "LOCK_HELD",
  no_quorum: "LOCK_NO_QUORUM",
  too_slow: "LOCK_TOO_SLOW",
};

export function nameAll(resources: readonly string[]): string {
  const more = resources.length - NAMED;
  return more > 1 ? `${resources.slice(0, NAMED).join(", ")} and ${more} more` : resources.join(", ");
}

/** An acquisition that took nothing: held, unreachable or too slow. Who holds it comes before the ballots. */
export function describeLost(resources: readonly string[], lost: Lost, teller: Teller): string {
  const { size, quorum } = teller.policy;
  const granted = `${describeHolder(lost, size)}${lost.grants} of ${size} nodes granted ${nameAll(resources)}, ${quorum} needed`;
  const others = describeBallots(
    lost.ballots.filter((ballot) => ballot.kind !== "granted"),
    teller,
    resources,
  );
  const unanswered = size - lost.ballots.length;
  const details = [others, unanswered > 0 ? `${unanswered} had not answered when that was settled` : ""]
    .filter((part) => part !== "")
    .join(", ");
  const message = details === "" ? granted : `${granted}; ${details}`;
  if (lost.leftMs !== undefined) return `${message}; it took so long that ${lost.leftMs.toFixed(0)} ms of the lease were left: given back`;
  if (lost.seals.length > 0) return `${message}; the token could not be stored on a quorum: ${describeBallots(lost.seals, teller)}`;
  return message;
}

/** "orders/42 is held by cron-a for 4.8 s more (3 of 5 nodes); ", by the most ballots that agree. */
function describeHolder({ reason, ballots }: Lost, size: number): string {
  if (reason !== "held") return "";
  const others = ballots.filter((ballot) => ballot.kind === "held");
  const alike = ({ resource, holder }: Held) => others.filter((other) => other.resource === resource && other.holder === holder);
  const [most = []] = others.map(alike).sort((one, other) => other.length - one.length);
  const [first] = most;
  if (first === undefined) return "";
  const forMs = Math.max(...most.map(({ remainingMs }) => remainingMs));
  const time = forMs < 1_000 ? `${Math.ceil(forMs)} ms` : `${(forMs / 1_000).toFixed(1)} s`;
  return `${first.resource} is held by ${first.holder} for ${time} more (${most.length} of ${size} nodes); `;
}

/**
 * Ballots that say the same are told together: "n3 held for 812 ms more by worker-7, n4
 * (10.0.0.4:6379) and n5 (10.0.0.5:6379) unreachable (ECONNREFUSED)". Of several resources, the one
 * that is held is named.
 */
export function describeBallots(ballots: readonly Ballot[], { nodes, policy }: Teller, resources: readonly string[] = []): string {
  const nameOf = ({ kind, node }: Ballot): string => {
    const address = kind === "unreachable" || kind === "quarantined" ? nodes.find(({ name }) => name === node)?.address : undefined;
    return address === undefined ? node : `${node} (${address})`;
  };
  const groups = new Map<string, { readonly nodes: string[]; atMostMs: number | undefined }>();
  for (const ballot of ballots) {
    const [words, forMs] = describeBallot(ballot, policy.label, resources.length > 1);
    const group = groups.get(words);
    if (group === undefined) groups.set(words, { nodes: [nameOf(ballot)], atMostMs: forMs });
    else {
      group.nodes.push(nameOf(ballot));
      if (forMs !== undefined) group.atMostMs = Math.max(forMs, group.atMostMs ?? 0);
    }
  }
  const sentences = [...groups].map(([words, { nodes: named, atMostMs }]) => {
    return `${enumerate(named)} ${atMostMs === undefined ? words : words.replace("#", String(Math.ceil(atMostMs)))}`;
  });
  return sentences.join(", ");
}

// The words, with # in the place of the milliseconds that follow: nodes that say the same for a
// slightly different time are told together.
function describeBallot(ballot: Ballot, ownLabel: string, isOfMany: boolean): [words: string, forMs?: number] {
  switch (ballot.kind) {
    case "unreachable":
      return [`unreachable (${ballot.cause})`];
    case "quarantined":
      if (ballot.reason !== undefined) return [`not admitted: ${ballot.reason}`];
      return ballot.readyInMs === undefined
        ? ["quarantined after a restart"]
        : ["quarantined after a restart for # ms more", ballot.readyInMs];
    case "held":
      return [
        `held for # ms more by ${ballot.holder}${ownership(ballot.holder, ownLabel)}${isOfMany ? `, who has ${ballot.resource}` : ""}`,
        ballot.remainingMs,
      ];
    case "taken":
      return [`taken for # ms more by ${ballot.holder}`, ballot.remainingMs];
    case "epoch_moved":
      return ["answered while another node was being readmitted, which does not count"];
    case "kept":
      return ["taken by another meanwhile"];
    case "missing":
      return ["without an owner"];
    case "lost":
      return ["no longer ours"];
    case "seen":
      return ballot.holder === null ? ["free"] : [`held for # ms more by ${ballot.holder}`, ballot.remainingMs ?? 0];
    default:
      return [ballot.kind];
  }
}

/**
 * The usual label names one process. One that the user chose may be that of many, so it proves
 * nothing.
 */
function ownership(holder: string, ownLabel: string): string {
  if (holder !== ownLabel) return "";
  return holder === usualLabel() ? ", which is this very process" : ", which is also the label of this locker";
}

function enumerate(nodes: readonly string[]): string {
  if (nodes.length < 2) return nodes.join("");
  return `${nodes.slice(0, -1).join(", ")} and ${nodes.at(-1)}`;
}

/** A lease that is no longer held. */
export function describeLoss(
  lease: { readonly resources: readonly string[]; readonly token: number },
  reason: LeaseLostReason,
  lastedMs: number,
): string {
  const what = `the lease of ${nameAll(lease.resources)} with token ${lease.token}`;
  const time = `${Math.round(lastedMs)} ms`;
  if (reason === "released") return `${what} was released by its holder`;
  if (reason === "closed") return `${what} ended: its locker was closed`;
  if (reason === "taken") return `${what} was lost: too many nodes have another owner for it, or none; somebody else may hold it now`;
  if (reason === "expired") return `${what} was lost: its ${time} ran out without a renewal; somebody else may hold it now`;
  const tooMany = reason === "quarantined" ? "nodes had restarted and were not believed yet" : "nodes could not be reached";
  return `${what} was lost: its ${time} ran out and it could not be renewed, because too many ${tooMany}; somebody else may hold it now`;
}

/** A fleet in which too few nodes are admitted. */
export function describeState(state: FleetState, teller: Teller): string {
  const { size, quorum } = teller.policy;
  const unreachable = state.unreachable.map(({ node, cause }) => ({ kind: "unreachable", node, cause }) as const);
  const others = describeBallots(
    [...state.quarantined.map((ballot) => ({ ...ballot, kind: "quarantined" }) as const), ...unreachable],
    teller,
  );
  return `${state.admitted.length} of ${size} nodes are ready, ${quorum} needed; ${others}`;
}

/** The last acquisition of a caller that may not try again. */
export function lossError(resources: readonly string[], lost: Lost, teller: Teller): LockError {
  return new LockError(codes[lost.reason], describeLost(resources, lost, teller), lossDetails(resources, lost, teller.policy));
}

/**
 * A caller whose waitMs ended behind others of this process: it is told what the first of them
 * learnt.
 */
export function queueError(
  resources: readonly string[],
  waited: { readonly inFront: number; readonly last: Lost | undefined; readonly isHeldHere: boolean },
  teller: Teller,
): LockError {
  const { inFront, last, isHeldHere } = waited;
  const message = `no turn for ${nameAll(resources)} within waitMs: ${inFront} of this process ${inFront === 1 ? "was" : "were"} in front`;
  // The one in front waits for a lease of this process, and has not asked the nodes.
  if (last === undefined && isHeldHere) return new LockError("LOCK_HELD", `${message}, one of which held it`, { resources });
  // The one in front has not learnt anything yet: the time was too short for a single round.
  if (last === undefined) return new LockError("LOCK_TOO_SLOW", `${message}, and the nodes had not answered`, { resources });
  const lastly = `${message}; at the last attempt ${describeLost(resources, last, teller)}`;
  return new LockError(codes[last.reason], lastly, lossDetails(resources, last, teller.policy));
}

/** A caller whose time ended while other calls of this process kept the nodes busy. */
export function busyError(resources: readonly string[], atOnce: number): LockError {
  const message = `${nameAll(resources)} was not asked for in time: ${atOnce} other attempts of this process were under way all the while`;
  return new LockError("LOCK_TOO_SLOW", message, { resources });
}

export function closedError(resources: readonly string[]): LockError {
  const what = resources.length === 0 ? "" : ` while ${nameAll(resources)} was asked for`;
  return new LockError("LOCK_ABORTED", `the locker was closed${what}`, { resources });
}

function lossDetails(resources: readonly string[], lost: Lost, policy: Policy): ConstructorParameters<typeof LockError>[2] {
  const retryMs = retryAfterMs(lost, policy);
  return {
    resources,
    ballots: [...lost.ballots, ...lost.seals],
    ...(retryMs === undefined ? {} : { retryAfterMs: retryMs }),
  };
}

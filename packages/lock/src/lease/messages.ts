// Says in one sentence what happened, with numbers, then what it means. For people: nothing may depend on the wording, which is why errors have codes.

import type { Policy } from "../options/policy.js";
import type { Ballot } from "../protocol/ballot.js";
import type { LeaseLostReason } from "../protocol/errors.js";
import type { FleetState } from "../protocol/fleet.js";
import type { Lost } from "../protocol/outcome.js";
import type { Electorate } from "../quorum/tally.js";

/** A lease of more resources is told by the first of them: a message is read by people. */
const NAMED = 3;

export function nameAll(resources: readonly string[]): string {
  const more = resources.length - NAMED;
  return more > 1 ? `${resources.slice(0, NAMED).join(", ")} and ${more} more` : resources.join(", ");
}

/** An attempt that took nothing. */
export function describeLost(resources: readonly string[], lost: Lost, policy: Policy): string {
  const what = nameAll(resources);
  const granted = `${lost.grants} of ${policy.size} nodes granted ${what}, ${policy.quorum} needed`;
  const others = describeBallots(
    lost.ballots.filter((ballot) => ballot.kind !== "granted"),
    resources,
  );
  const voiceless = policy.size - lost.ballots.length;
  const details = [others, voiceless > 0 ? `${voiceless} had not answered when that was settled` : ""]
    .filter((part) => part !== "")
    .join(", ");
  const account = details === "" ? granted : `${granted}; ${details}`;
  if (lost.leftMs !== undefined) return `${account}; it took so long that ${lost.leftMs.toFixed(0)} ms of the lease were left: given back`;
  if (lost.seals.length > 0) return `${account}; the token could not be stored on a quorum: ${describeBallots(lost.seals)}`;
  return account;
}

/**
 * Ballots that say the same are told together: "n3 held for 812 ms more by worker-7, n4 and n5 unreachable (ECONNREFUSED)". Which of several resources is held is told
 * as well.
 */
export function describeBallots(ballots: readonly Ballot[], resources: readonly string[] = []): string {
  const groups = new Map<string, { readonly nodes: string[]; atMostMs: number | undefined }>();
  for (const ballot of ballots) {
    const [saying, forMs] = describeBallot(ballot, resources.length > 1);
    const group = groups.get(saying);
    if (group === undefined) groups.set(saying, { nodes: [ballot.node], atMostMs: forMs });
    else {
      group.nodes.push(ballot.node);
      if (forMs !== undefined) group.atMostMs = Math.max(forMs, group.atMostMs ?? 0);
    }
  }
  const sentences = [...groups].map(([saying, { nodes, atMostMs }]) => {
    return `${enumerate(nodes)} ${atMostMs === undefined ? saying : saying.replace("#", String(Math.ceil(atMostMs)))}`;
  });
  return sentences.join(", ");
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
  const why = reason === "quarantined" ? "nodes had restarted and were not believed yet" : "nodes could not be reached";
  return `${what} was lost: its ${time} ran out and it could not be renewed, because too many ${why}; somebody else may hold it now`;
}

/** A fleet in which too few nodes are believed. */
export function describeState(state: FleetState, { size, quorum }: Electorate): string {
  const unreachable = state.unreachable.map(({ node, cause }) => ({ kind: "unreachable", node, cause }) as const);
  const account = describeBallots([...state.quarantined.map((ballot) => ({ ...ballot, kind: "quarantined" }) as const), ...unreachable]);
  return `${state.admitted.length} of ${size} nodes are ready, ${quorum} needed; ${account}`;
}

// What it says, with # in the place of the milliseconds that follow: nodes that say the same for a slightly different time are told together.
function describeBallot(ballot: Ballot, isOfMany: boolean): [string, number?] {
  switch (ballot.kind) {
    case "unreachable":
      return [`unreachable (${ballot.cause})`];
    case "quarantined":
      return ballot.readyInMs === undefined
        ? ["quarantined after a restart"]
        : ["quarantined after a restart for # ms more", ballot.readyInMs];
    case "held":
      return [`held for # ms more by ${ballot.holder}${isOfMany ? `, who has ${ballot.resource}` : ""}`, ballot.remainingMs];
    case "taken":
      return [`taken for # ms more by ${ballot.holder}`, ballot.remainingMs];
    case "epoch_moved":
      return ["answered while another node was being readmitted, which does not count"];
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

function enumerate(nodes: readonly string[]): string {
  if (nodes.length < 2) return nodes.join("");
  return `${nodes.slice(0, -1).join(", ")} and ${nodes.at(-1)}`;
}

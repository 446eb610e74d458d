// Checks ballots against the servers: a node that is said to have granted did so, "held" means that
// a quorum answered, and no node of a healthy fleet is said to be unreachable.
import type { Ballot } from "#lock/protocol/ballot.js";
import type { Attempted } from "#lock/protocol/locker.js";
import { majority } from "#lock/quorum.js";
import type { ClientProcess } from "../engine/client-process.js";
import type { Holding } from "./lease-checker.js";
import type { Surroundings } from "./surroundings.js";

export function judgeLease({ checker, oracle, rules }: Surroundings, { client, lease }: Holding): void {
  // A locker has a name of its own for a node that it found in the roster.
  if (rules.lists === "two") return;
  for (const ballot of lease.ballots) {
    if (ballot.kind !== "granted") continue;
    const grantee = oracle.granteeOf(ballot.node, lease.resource, ballot.token);
    if (grantee?.startsWith(`${client.name}-`)) continue;
    checker.break(
      "ballots",
      `${ballot.node} is said to have granted ${lease.resource} to ${client.name} with ${ballot.token}; it was ${grantee ?? "not granted"}`,
    );
  }
}

export function judgeAttempt(
  { checker, scenario, phase }: Surroundings,
  client: ClientProcess,
  { resource, outcome }: { readonly resource: string; readonly outcome: Attempted },
): void {
  const counted = (kinds: readonly Ballot["kind"][]): number => outcome.ballots.filter(({ kind }) => kinds.includes(kind)).length;
  const said = `${client.name} tried ${resource} and was told`;
  const quorum = majority(scenario.nodes);
  if (!outcome.ok && outcome.reason === "held") {
    const answered = counted(["granted", "held", "epoch_moved"]);
    if (answered < quorum) checker.break("ballots", `${said} it is held, when ${answered} of ${scenario.nodes} had answered`);
  }
  // A quorum of grants may still end in no_quorum, if the token could not be sealed.
  if (!outcome.ok && outcome.reason === "no_quorum" && counted(["granted"]) < quorum && counted(["granted", "held"]) === scenario.nodes)
    checker.break("ballots", `${said} there was no quorum, when all had answered`);
  if (phase() === "calm" && counted(["unreachable", "quarantined"]) > 0)
    checker.break("ballots", `${said} of nodes that cannot be asked, when all is well`);
}

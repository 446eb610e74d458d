// Counts the ballots of grants and seals. Pure: the same ballots give the same verdict in any
// order, and a verdict that is not "open" is not changed by any ballot still to come. A node that
// could not be asked never counts as one that said no.
import type { EpochMoved, GrantBallot, SealBallot } from "../protocol/ballot.js";
import type { Ballots } from "./round.js";

/** The smallest number of nodes of which any two sets share a node. */
export function majority(size: number): number {
  return Math.floor(size / 2) + 1;
}

/** N configured nodes, of which `quorum` must agree. */
export interface QuorumRule {
  readonly size: number;
  readonly quorum: number;
}

/**
 * - `yes`: a quorum did it.
 * - `epoch_moved`: a quorum did it, but some of them in another epoch, which does not count:
 *   ask again.
 * - `no`: a quorum answered, and not enough of them said yes.
 * - `silent`: too few nodes could be asked.
 */
export type Verdict = "yes" | "epoch_moved" | "no" | "silent" | "open";

/** Did a quorum grant it? */
export function tallyGrants(ballots: Ballots<GrantBallot | EpochMoved>, rule: QuorumRule): Verdict {
  return tally(ballots, rule, grantKinds);
}

/**
 * Does a quorum store the token where it still has this owner? A node counts if it granted exactly
 * this token or sealed it. One that granted a higher token does not, although its counter is high
 * enough: a later owner of it would have to exceed that token, not the one chosen as the maximum of
 * our own quorum (T1).
 */
export function tallySeals(ballots: Ballots<SealBallot | EpochMoved>, rule: QuorumRule): Verdict {
  return tally(ballots, rule, sealKinds);
}

const grantKinds = { yes: "granted", no: "held" } as const;
const sealKinds = { yes: "sealed", no: "lost" } as const;

// Each verdict is given as soon as no completion of the open ballots leads to another one: `yes`
// only needs yes; `epoch_moved` needs yes + moved and no hope of yes; and so on down the list.
function tally(
  ballots: Ballots<{ readonly kind: string }>,
  { size, quorum }: QuorumRule,
  kinds: { readonly yes: string; readonly no: string },
): Verdict {
  let yes = 0;
  let moved = 0;
  let no = 0;
  let open = 0;
  for (let i = 0; i < size; i++) {
    const kind = ballots[i]?.kind;
    if (kind === kinds.yes) yes++;
    else if (kind === undefined) open++;
    else if (kind === kinds.no) no++;
    else if (kind === "epoch_moved") moved++;
  }
  if (yes >= quorum) return "yes";
  if (yes + open >= quorum) return "open";
  if (yes + moved >= quorum) return "epoch_moved";
  if (yes + moved + open >= quorum) return "open";
  if (yes + moved + no >= quorum) return "no";
  return yes + moved + no + open >= quorum ? "open" : "silent";
}

/** What the grants that have arrived say of the token. */
export interface Choice {
  /** The one that a quorum granted, or else the highest. */
  readonly token: number;
  /** How many nodes granted exactly that. */
  readonly nodes: number;
  /** The highest that was granted. */
  readonly highest: number;
  /** No quorum granted one token, and ballots to come may still make one. */
  readonly isOpen: boolean;
}

/**
 * A token that a quorum granted is safe although another node granted a higher one: that grant
 * might as well not have arrived. Every later quorum meets it, and none grants it twice (T1, T2).
 */
export function chooseToken(ballots: Ballots<GrantBallot | EpochMoved>, { size, quorum }: QuorumRule): Choice {
  let [token, nodes, highest, most, open] = [0, 0, 0, 0, 0];
  for (let i = 0; i < size; i++) {
    const ballot = ballots[i];
    if (ballot === undefined) open++;
    if (ballot?.kind !== "granted") continue;
    highest = Math.max(highest, ballot.token);
    if (ballot.token === token || nodes >= quorum) continue;
    const alike = grantsOf(ballots, ballot.token);
    most = Math.max(most, alike);
    if (alike >= quorum || ballot.token > token) [token, nodes] = [ballot.token, alike];
  }
  return { token, nodes, highest, isOpen: nodes < quorum && most + open >= quorum };
}

function grantsOf(ballots: Ballots<GrantBallot | EpochMoved>, token: number): number {
  let nodes = 0;
  for (const ballot of ballots) if (ballot?.kind === "granted" && ballot.token === token) nodes++;
  return nodes;
}

// Counts ballots. Pure: the same ballots give the same verdict in any order, and a verdict, once it is not "open", is not changed by any ballot still to come.
// A node that could not be asked never counts as one that said no.
import type { EpochMoved, ExtendBallot, GrantBallot, InspectBallot, ReleaseBallot, SealBallot } from "../protocol/ballot.js";

/** The smallest number of nodes of which any two sets share a node. */
export function majority(size: number): number {
  return Math.floor(size / 2) + 1;
}

/** Who votes: N configured nodes, of which `quorum` must agree. */
export interface Electorate {
  readonly size: number;
  readonly quorum: number;
}

/** Ballots by node; a node that has not answered yet has none. */
export type Ballots<Ballot> = readonly (Ballot | undefined)[];

/**
 * - `yes`: a quorum did it.
 * - `epoch_moved`: a quorum did it, but some of them in an epoch that may not be counted: ask again.
 * - `no`: a quorum answered, and not enough of them said yes.
 * - `silent`: too few nodes could be asked to tell.
 */
export type Verdict = "yes" | "epoch_moved" | "no" | "silent" | "open";

/** May we have it? */
export function tallyGrants(ballots: Ballots<GrantBallot | EpochMoved>, electorate: Electorate): Verdict {
  return tally(ballots, electorate, grantWords);
}

/**
 * Is the token stored where we own the key? A node counts if it granted exactly this token or sealed it. One that granted more does not, although its counter is
 * high enough: the token that a later owner of it would have to exceed is not the one that we were given as the maximum of our own quorum (T1).
 */
export function tallySeals(ballots: Ballots<SealBallot | EpochMoved>, electorate: Electorate): Verdict {
  return tally(ballots, electorate, sealWords);
}

const grantWords = { yes: "granted", no: "held" } as const;
const sealWords = { yes: "sealed", no: "lost" } as const;

// Each verdict is given as soon as no completion of the open ballots leads to another one: `yes` only needs yes; `epoch_moved` needs yes + moved and no hope of
// yes; and so on down the list.
function tally(
  ballots: Ballots<{ readonly kind: string }>,
  { size, quorum }: Electorate,
  words: { readonly yes: string; readonly no: string },
): Verdict {
  let yes = 0;
  let moved = 0;
  let no = 0;
  let open = 0;
  for (let i = 0; i < size; i++) {
    const kind = ballots[i]?.kind;
    if (kind === words.yes) yes++;
    else if (kind === undefined) open++;
    else if (kind === words.no) no++;
    else if (kind === "epoch_moved") moved++;
  }
  if (yes >= quorum) return "yes";
  if (yes + open >= quorum) return "open";
  if (yes + moved >= quorum) return "epoch_moved";
  if (yes + moved + open >= quorum) return "open";
  if (yes + moved + no >= quorum) return "no";
  return yes + moved + no + open >= quorum ? "open" : "silent";
}

/** The highest token among the grants that count. */
export function highestToken(ballots: Ballots<GrantBallot | EpochMoved>): number {
  let highest = 0;
  for (const ballot of ballots) if (ballot?.kind === "granted" && ballot.token > highest) highest = ballot.token;
  return highest;
}

/** `renewed`: a quorum renewed it. `lost`: so many nodes do not have us as the owner that no quorum is left. `unknown`: neither could be learnt. */
export type RenewalVerdict = "renewed" | "lost" | "unknown" | "open";

/** Is it still ours? */
export function tallyExtensions(ballots: Ballots<ExtendBallot>, { size, quorum }: Electorate): RenewalVerdict {
  let yes = 0;
  let no = 0;
  let open = 0;
  for (let i = 0; i < size; i++) {
    const kind = ballots[i]?.kind;
    if (kind === "extended") yes++;
    else if (kind === "missing" || kind === "taken") no++;
    else if (kind === undefined) open++;
  }
  if (yes >= quorum) return "renewed";
  if (size - no < quorum) return "lost";
  return yes + open >= quorum || size - no - open < quorum ? "open" : "unknown";
}

/** `free`: a quorum has it no longer. `unconfirmed`: too few nodes could be told; the keys there run out by themselves. */
export type ReleaseVerdict = "free" | "unconfirmed" | "open";

/** Is it free for others? */
export function tallyReleases(ballots: Ballots<ReleaseBallot>, { size, quorum }: Electorate): ReleaseVerdict {
  let gone = 0;
  let open = 0;
  for (let i = 0; i < size; i++) {
    const kind = ballots[i]?.kind;
    if (kind === "released" || kind === "absent") gone++;
    else if (kind === undefined) open++;
  }
  if (gone >= quorum) return "free";
  return gone + open >= quorum ? "open" : "unconfirmed";
}

/**
 * - `stored`: a quorum stores this token or a higher one.
 * - `unissued`: a quorum does not: no lease has it, for a lease's token is stored on a quorum.
 * - `partly`: a quorum answered, and neither is true.
 * - `silent`: fewer than a quorum answered.
 */
export type StoredVerdict = "stored" | "unissued" | "partly" | "silent" | "open";

/** Is this token stored where every later lease meets it? */
export function tallyStored(token: number, ballots: Ballots<InspectBallot>, { size, quorum }: Electorate): StoredVerdict {
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
 * In how many milliseconds the resource can become free for us at the earliest, going by the time that the holders have left: until then the nodes that are free
 * or run out first do not make a quorum. undefined when too few nodes answered to tell.
 */
export function freeInMs(ballots: Ballots<GrantBallot | EpochMoved>, { quorum }: Electorate): number | undefined {
  let missing = quorum;
  const remaining: number[] = [];
  for (const ballot of ballots) {
    if (ballot?.kind === "granted" || ballot?.kind === "epoch_moved") missing--;
    else if (ballot?.kind === "held") remaining.push(ballot.remainingMs);
  }
  if (missing <= 0) return 0;
  remaining.sort((a, b) => a - b);
  return remaining[missing - 1];
}

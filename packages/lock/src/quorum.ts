// The quorum: the one round in which every verb asks the nodes, the counting of ballots, and what is
// left of a lease's time. All but the round is pure: the same ballots give the same verdict in any
// order, and a verdict that is not "open" is not changed by any ballot still to come. A node that
// could not be asked never counts as one that said no.
import type { InFlight } from "./platform/clock.js";
import { type Ballot, brokenPromise, type EpochMoved, type GrantBallot, type SealBallot, type Unreachable } from "./protocol/ballot.js";
import { channels, type RoundEvent } from "./protocol/events.js";
import type { LockNode, Reply } from "./protocol/node.js";

/** Ballots by node; a node that has not answered yet has none. */
export type Ballots<B> = readonly (B | undefined)[];

export interface Round<B extends Ballot, V extends string> {
  readonly question: RoundEvent["question"];
  readonly resources: readonly string[];
  /**
   * By node, as noted before the first byte was sent. A grant, seal or raise of another epoch
   * is made `epoch_moved`, which does not count: a member that was rebuilt meanwhile has not seen
   * its token, and might help to issue it again (T2).
   */
  readonly epochs?: Ballots<string>;
  /**
   * Filled in as they arrive, also after the verdict. A node that has one already is not asked, and at
   * least one has none: the verdict comes with a ballot.
   */
  readonly ballots: (B | Unreachable | undefined)[];
  ask(node: LockNode): Reply<B | Unreachable>;
  judge(ballots: Ballots<B | Unreachable>): V | "open";
  /**
   * Called with each ballot, also after the verdict: how many are still to come, and whose it is.
   */
  onBallot?(awaited: number, node: number): void;
}

/** Who is asked, and what counts that they are. */
export interface Voters {
  readonly nodes: readonly LockNode[];
  readonly inFlight: InFlight;
}

/**
 * Sends one request to every node at once and resolves with the verdict as soon as no further
 * ballot can change it. It sets no timer: every node answers within nodeTimeoutMs, if only with
 * `unreachable`, so the round ends by then.
 */
export function askAll<B extends Ballot, V extends string>({ nodes, inFlight }: Voters, round: Round<B, V>): Promise<V> {
  const { question, resources, ballots } = round;
  inFlight.begin();
  return new Promise((resolve, reject) => {
    let awaited = 0;
    let isOpen = true;
    const receive = (index: number, answer: B | Unreachable): void => {
      ballots[index] = round.epochs === undefined ? answer : counted(answer, round.epochs[index]);
      awaited--;
      if (isOpen) {
        const verdict = round.judge(ballots);
        if (verdict !== "open") {
          isOpen = false;
          resolve(verdict);
        } else if (awaited === 0) {
          reject(brokenPromise(`every node answered the ${question} round, and it has no verdict`));
        }
      }
      if (awaited === 0 && channels.round.hasSubscribers) channels.round.publish({ question, resources, ballots: castBallots(ballots) });
      round.onBallot?.(awaited, index);
      if (awaited === 0) inFlight.end();
    };
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      if (node === undefined || ballots[i] !== undefined) continue;
      awaited++;
      round.ask(node).then(
        (ballot) => receive(i, ballot),
        // A node must not reject. If it does all the same, that is a defect here: the round must
        // not hang, and it is no refusal.
        (error: unknown) => receive(i, { kind: "unreachable", node: node.name, cause: `bug: ${String(error)}` }),
      );
    }
  });
}

function counted<B extends Ballot>(ballot: B, noted: string | undefined): B {
  const { kind } = ballot;
  if (kind !== "granted" && kind !== "sealed" && kind !== "raised") return ballot;
  return ballot.epoch === noted ? ballot : ({ kind: "epoch_moved", node: ballot.node } satisfies EpochMoved as Ballot as B);
}

export function noBallots<B>(size: number): (B | undefined)[] {
  return new Array(size).fill(undefined);
}

/** The ballots that have arrived by now. */
export function castBallots<B>(ballots: Ballots<B>): B[] {
  return ballots.filter((ballot) => ballot !== undefined);
}

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
 * our own quorum, and tokens rise from holder to holder (T1).
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
  /** No quorum granted one token, and ballots to come may still make one. */
  readonly isOpen: boolean;
}

/**
 * A token that a quorum granted is safe although another node granted a higher one: that grant
 * might as well not have arrived. Every later quorum meets it, so tokens rise (T1), and none
 * grants it twice (T2).
 */
export function chooseToken(ballots: Ballots<GrantBallot | EpochMoved>, { size, quorum }: QuorumRule): Choice {
  let [token, nodes, most, open] = [0, 0, 0, 0];
  for (let i = 0; i < size; i++) {
    const ballot = ballots[i];
    if (ballot === undefined) open++;
    if (ballot?.kind !== "granted") continue;
    if (ballot.token === token || nodes >= quorum) continue;
    const alike = grantsOf(ballots, ballot.token);
    most = Math.max(most, alike);
    if (alike >= quorum || ballot.token > token) [token, nodes] = [ballot.token, alike];
  }
  return { token, nodes, isOpen: nodes < quorum && most + open >= quorum };
}

function grantsOf(ballots: Ballots<GrantBallot | EpochMoved>, token: number): number {
  let nodes = 0;
  for (const ballot of ballots) if (ballot?.kind === "granted" && ballot.token === token) nodes++;
  return nodes;
}

/**
 * When a resource that is held can be free at the earliest, by the time that its holders have left:
 * until then the nodes that are free or run out first do not make a quorum. undefined when too few
 * nodes answered to tell.
 */
export function freeInMs(ballots: Ballots<GrantBallot | EpochMoved>, { quorum }: QuorumRule): number | undefined {
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

/** Of the nodes' expiry and of our own timers. */
const GRANULARITY_MS = 2;

/**
 * The drift allowance: by how much the clocks of client and nodes may differ over a ttl, and the granularity.
 */
export function driftMs(ttlMs: number, driftFactor: number): number {
  return ttlMs * driftFactor + GRANULARITY_MS;
}

/**
 * How long a lease lasts, counted from the moment before the first byte of its grant request was
 * sent.
 */
export function validityMs(ttlMs: number, driftFactor: number): number {
  return ttlMs - driftMs(ttlMs, driftFactor);
}

/** The shortest ttl whose lease lasts so long. */
export function neededTtlMs(lastsMs: number, driftFactor: number): number {
  return (lastsMs + GRANULARITY_MS) / (1 - driftFactor);
}

/** What must be left of a lease when it is granted: no work fits into less than a tenth of its ttl. */
export function minValidityMs(ttlMs: number): number {
  return ttlMs / 10;
}

/** The shortest ttl that leaves so much of it, in whole milliseconds. */
export function leastTtlMs(driftFactor: number): number {
  return Math.ceil(driftMs(0, driftFactor) / (0.9 - driftFactor));
}

/**
 * What is left of something that lasts `lastsMs`, after so much time has passed on either clock, of
 * which the larger counts: the monotonic clock stands still while a machine is suspended, the wall
 * clock may be set back, and a lease ends by local time whatever else happens (L1). Negative when it is over.
 */
export function remainingMs(lastsMs: number, monotonicPassedMs: number, wallPassedMs: number): number {
  return lastsMs - Math.max(monotonicPassedMs, wallPassedMs);
}

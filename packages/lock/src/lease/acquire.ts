// The algorithm: one grant round, one seal round if the nodes granted different tokens, the time
// that is left, and everything given back if it was lost. Never waits for a holder, and is repeated
// only when epochs changed under it.
import type { Policy } from "../options/policy.js";
import type { InFlight } from "../platform/clock.js";
import { brokenPromise, type EpochMoved, type GrantBallot, type LossReason, type SealBallot } from "../protocol/ballot.js";
import { channels } from "../protocol/events.js";
import type { LockNode } from "../protocol/node.js";
import { isToken, MAX_TOKEN } from "../protocol/token.js";
import {
  askAll,
  castBallots,
  chooseToken,
  minValidityMs,
  noBallots,
  remainingMs,
  tallyGrants,
  tallySeals,
  type Verdict,
  type Voters,
  validityMs,
} from "../quorum.js";
import { giveBack, giveBackAsAnswered } from "./release.js";
import type { LockerState, Lost, Outcome, Wanted } from "./state.js";

type CountedGrant = GrantBallot | EpochMoved;
type CountedSeal = SealBallot | EpochMoved;
type Settled = Exclude<Verdict, "open">;

/** An admission changes every epoch once; members may restart one after the other. */
const MAX_TRIES = 4;

/** `willClaim`: where it is refused, the caller waits. */
export async function acquire(locker: LockerState, wanted: Wanted, willClaim = wanted.wait !== undefined): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    const outcome = await new Acquisition(locker, wanted, willClaim).run();
    if (outcome.kind === "won" || !outcome.epochMoved || tries >= MAX_TRIES) return outcome;
  }
}

class Acquisition implements Voters {
  /** As they are when it begins: only the members of that generation are counted. */
  readonly nodes: readonly LockNode[];
  readonly inFlight: InFlight;
  readonly #policy: Policy;
  readonly #locker: LockerState;
  readonly #wanted: Wanted;
  readonly #willClaim: boolean;
  readonly #owner: string;
  // Noted before the first byte is sent. A ballot of another epoch was cast after some
  // member's memory had been rebuilt from this node: the token stored here was not seen by that
  // rebuilding, and the rebuilt member could help to issue it again (T2).
  readonly #epochs: readonly (string | undefined)[];
  readonly #startMonotonicMs: number;
  readonly #startWallMs: number;
  readonly #grants: (CountedGrant | undefined)[];
  #seals: (CountedSeal | undefined)[] = [];
  #outcome: Outcome | undefined;
  #allAnswered = false;
  #onAnyBallot: (() => void) | undefined;
  #onLate: ((node: number) => void) | undefined;

  constructor(locker: LockerState, wanted: Wanted, willClaim: boolean) {
    const { clock, fleet, nodes } = locker;
    this.#locker = locker;
    this.nodes = nodes;
    this.inFlight = locker.inFlight;
    this.#policy = locker.policy;
    // A default follows the fleet; one that was given was checked when the caller came, and the
    // fleet's may have been lowered since.
    const { maxTtlMs = wanted.ttlMs } = fleet;
    this.#wanted = wanted.ttlMs > maxTtlMs ? { ...wanted, ttlMs: maxTtlMs } : wanted;
    this.#willClaim = willClaim;
    this.#owner = clock.secret();
    this.#grants = noBallots(nodes.length);
    this.#epochs = nodes.map((node) => node.epoch());
    this.#startMonotonicMs = clock.monotonicMs();
    this.#startWallMs = clock.wallMs();
  }

  async run(): Promise<Outcome> {
    const { resources, label, ttlMs, wait } = this.#wanted;
    const question = { resources, owner: this.#owner, label, ttlMs };
    const claim = wait === undefined ? undefined : { ...question, wait };
    const verdict = await askAll<CountedGrant, Settled>(this, {
      question: "grant",
      resources,
      epochs: this.#epochs,
      ballots: this.#grants,
      ask: (node) => (claim === undefined ? node.ask("grant", question) : node.ask("claim", claim)),
      judge: (ballots) => tallyGrants(ballots, this.#policy),
      onBallot: (awaited, node) => {
        this.#onAnyBallot?.();
        this.#onLate?.(node);
        if (awaited > 0) return;
        this.#allAnswered = true;
        this.#publish();
      },
    });
    const reason = verdict === "no" ? "held" : "no_quorum";
    this.#outcome = verdict === "yes" ? await this.#chooseToken() : this.#lose(reason, verdict === "epoch_moved");
    this.#publish();
    return this.#outcome;
  }

  // A token that a quorum granted alike is met by every later quorum, and one round trip was
  // enough. Otherwise the highest grant names it, which may be stored on a single node that the
  // next winner's quorum does not contain, and that winner would be given a smaller one (T1): hence
  // the seal round.
  async #chooseToken(): Promise<Outcome> {
    const policy = this.#policy;
    let choice = chooseToken(this.#grants, policy);
    if (choice.isOpen) {
      await this.#moreGrants();
      choice = chooseToken(this.#grants, policy);
    }
    const { token, nodes } = choice;
    if (!isToken(token)) throw brokenPromise(`T1: a granted token is from 1 to ${MAX_TOKEN}, not ${token}`);
    if (nodes < policy.quorum) {
      const verdict = await this.#sealRound(token);
      // "no": keys of this owner had run out, or were removed, before they could be sealed.
      if (verdict !== "yes") return this.#lose(verdict === "no" ? "too_slow" : "no_quorum", verdict === "epoch_moved");
    }
    return this.#inTime(token);
  }

  // Where acquisitions reached the nodes in different orders, the grants to come mostly make a
  // quorum alike. They are given as much time again as the first ones took: then a seal round is
  // the shorter way, since a node may be silent (docs/decisions/0004).
  #moreGrants(): Promise<void> {
    const { clock } = this.#locker;
    return new Promise((resolve) => {
      const timer = clock.setTimer(clock.monotonicMs() - this.#startMonotonicMs, resolve);
      this.#onAnyBallot = () => {
        if (chooseToken(this.#grants, this.#policy).isOpen) return;
        clock.clearTimer(timer);
        resolve();
      };
    });
  }

  // Asks only nodes that have granted by now, and of those only the ones that do not store the
  // token already. A node seals only for the present owner, so two never end up with one token (T2).
  #sealRound(token: number): Promise<Settled> {
    const { resources } = this.#wanted;
    const question = { resources, owner: this.#owner, token };
    this.#seals = this.nodes.map((node, i) => {
      const grant = this.#grants[i];
      const notAsked = "not asked to seal: it has not granted";
      if (grant?.kind !== "granted") return { kind: "unreachable", node: node.name, cause: notAsked };
      return grant.token === token ? { kind: "sealed", node: node.name, epoch: grant.epoch } : undefined;
    });
    return askAll<CountedSeal, Settled>(this, {
      question: "seal",
      resources,
      epochs: this.#epochs,
      ballots: this.#seals,
      ask: (node) => node.ask("seal", question),
      judge: (ballots) => tallySeals(ballots, this.#policy),
    });
  }

  // The lease counts from before the first byte was sent: the nodes' keys began to run later, so
  // they outlast it, and two never hold it at a time (L2).
  #inTime(token: number): Outcome {
    const { clock } = this.#locker;
    const { resources, ttlMs, wait } = this.#wanted;
    const startMonotonicMs = this.#startMonotonicMs;
    const startWallMs = this.#startWallMs;
    const lastsMs = validityMs(ttlMs, this.#policy.driftFactor);
    const leftMs = remainingMs(lastsMs, clock.monotonicMs() - startMonotonicMs, clock.wallMs() - startWallMs);
    if (leftMs < minValidityMs(ttlMs)) return this.#lose("too_slow", false, leftMs);
    const granted = { resources, owner: this.#owner, token, ttlMs, startMonotonicMs, startWallMs, ticket: wait?.ticket };
    return { kind: "won", ...granted, nodes: this.nodes, ballots: this.#grants };
  }

  #lose(reason: LossReason, epochMoved: boolean, leftMs?: number): Lost {
    const ballots = castBallots(this.#grants);
    const grants = ballots.filter(({ kind }) => kind === "granted" || kind === "epoch_moved").length;
    // Too slow: a quorum was kept from those that wait until now.
    const given = { resources: this.#wanted.resources, owner: this.#owner, tells: reason === "too_slow" };
    if (!this.#willClaim) giveBack(this, given, this.#grants);
    else this.#onLate = giveBackAsAnswered(this, given, this.#grants);
    const seals = castBallots(this.#seals);
    return { kind: "lost", reason, epochMoved, ballots, seals, grants, leftMs };
  }

  #publish(): void {
    if (this.#outcome === undefined || !this.#allAnswered || !channels.attempt.hasSubscribers) return;
    const outcome = this.#outcome;
    channels.attempt.publish({
      resources: this.#wanted.resources,
      outcome: outcome.kind === "won" ? "won" : outcome.reason,
      ...(outcome.kind === "won" ? { token: outcome.token } : {}),
      rounds: this.#seals.length === 0 ? 1 : 2,
      elapsedMs: this.#locker.clock.monotonicMs() - this.#startMonotonicMs,
      ballots: castBallots(this.#grants),
    });
  }
}

// The algorithm: one grant round, one seal round if the nodes granted different tokens, the time
// that is left, and everything given back if it was lost. Never waits for a holder, and is repeated
// only when epochs changed under it.
import { brokenPromise, type EpochMoved, type GrantBallot, type LossReason, type SealBallot } from "../protocol/ballot.js";
import { channels } from "../protocol/events.js";
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
  validityMs,
} from "../quorum.js";
import type { LeaseContext, Lost, Outcome, Wanted } from "./context.js";
import { giveBack, giveBackAsAnswered } from "./release.js";

type CountedGrant = GrantBallot | EpochMoved;
type CountedSeal = SealBallot | EpochMoved;
type Settled = Exclude<Verdict, "open">;

/** An admission changes every epoch once; members may restart one after the other. */
const MAX_TRIES = 4;

export async function acquire(context: LeaseContext, wanted: Wanted): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    const outcome = await new Acquisition(context, wanted).run();
    if (outcome.kind === "won" || !outcome.epochMoved || tries >= MAX_TRIES) return outcome;
  }
}

class Acquisition {
  readonly #context: LeaseContext;
  readonly #wanted: Wanted;
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
  #onGrant: (() => void) | undefined;
  #onLate: ((node: number) => void) | undefined;

  constructor(context: LeaseContext, wanted: Wanted) {
    const { clock, nodes, fleetMaxTtlMs = wanted.ttlMs } = context;
    // As it is now: only the members of the generation in which it begins are counted.
    this.#context = { ...context };
    // Checked when the caller came; it may have been lowered since.
    this.#wanted = wanted.ttlMs > fleetMaxTtlMs ? { ...wanted, ttlMs: fleetMaxTtlMs } : wanted;
    this.#owner = clock.secret();
    this.#grants = noBallots(nodes.length);
    this.#epochs = nodes.map((node) => node.epoch());
    this.#startMonotonicMs = clock.monotonicMs();
    this.#startWallMs = clock.wallMs();
  }

  async run(): Promise<Outcome> {
    const verdict = await this.#grantRound();
    const reason = verdict === "no" ? "held" : "no_quorum";
    this.#outcome = verdict === "yes" ? await this.#chooseToken() : this.#lose(reason, verdict);
    this.#publish();
    return this.#outcome;
  }

  #grantRound(): Promise<Settled> {
    const { policy } = this.#context;
    const { resources, ttlMs, wait } = this.#wanted;
    const leastToken = this.#context.leastToken.at(this.#startMonotonicMs);
    const question = { resources, owner: this.#owner, label: policy.label, ttlMs, leastToken };
    const claim = wait === undefined ? undefined : { ...question, wait };
    return askAll<CountedGrant, Settled>(this.#context, {
      question: "grant",
      resources,
      epochs: this.#epochs,
      ballots: this.#grants,
      ask: (node) => (claim === undefined ? node.ask("grant", question) : node.ask("claim", claim)),
      judge: (ballots) => tallyGrants(ballots, policy),
      onBallot: (awaited, node) => {
        this.#onGrant?.();
        this.#onLate?.(node);
        if (awaited > 0) return;
        this.#allAnswered = true;
        this.#publish();
      },
    });
  }

  // A token that a quorum granted alike is met by every later quorum, and one round trip was
  // enough. Otherwise the highest grant names it, which may be stored on a single node that the
  // next winner's quorum does not contain, and that winner would be given a smaller one (T1): hence
  // the seal round.
  async #chooseToken(): Promise<Outcome> {
    const { clock, leastToken, policy } = this.#context;
    let choice = chooseToken(this.#grants, policy);
    if (choice.isOpen) {
      await this.#moreGrants();
      choice = chooseToken(this.#grants, policy);
    }
    const { token, nodes, highest } = choice;
    if (!isToken(token)) throw brokenPromise(`T1: a granted token is from 1 to ${MAX_TOKEN}, not ${token}`);
    leastToken.hear(highest, clock.monotonicMs());
    if (nodes < policy.quorum) {
      const verdict = await this.#sealRound(token);
      // "no": keys of this owner had run out, or were removed, before they could be sealed.
      if (verdict !== "yes") return this.#lose(verdict === "no" ? "too_slow" : "no_quorum", verdict);
    }
    return this.#inTime(token);
  }

  // Where acquisitions reached the nodes in different orders, the grants to come mostly make a
  // quorum alike. They are given as much time again as the first ones took: then a seal round is
  // the shorter way, since a node may be silent (docs/decisions/0004).
  #moreGrants(): Promise<void> {
    const { clock, policy } = this.#context;
    return new Promise((resolve) => {
      const timer = clock.setTimer(clock.monotonicMs() - this.#startMonotonicMs, resolve);
      this.#onGrant = () => {
        if (chooseToken(this.#grants, policy).isOpen) return;
        clock.clearTimer(timer);
        resolve();
      };
    });
  }

  // Asks only nodes that have granted by now, and of those only the ones that do not store the
  // token already. A node seals only for the present owner (T2).
  #sealRound(token: number): Promise<Settled> {
    const { nodes, policy } = this.#context;
    const { resources } = this.#wanted;
    const question = { resources, owner: this.#owner, token };
    this.#seals = nodes.map((node, i) => {
      const grant = this.#grants[i];
      const notAsked = "not asked to seal: it has not granted";
      if (grant?.kind !== "granted") return { kind: "unreachable", node: node.name, cause: notAsked };
      return grant.token === token ? { kind: "sealed", node: node.name, epoch: grant.epoch } : undefined;
    });
    return askAll<CountedSeal, Settled>(this.#context, {
      question: "seal",
      resources,
      epochs: this.#epochs,
      ballots: this.#seals,
      ask: (node) => node.ask("seal", question),
      judge: (ballots) => tallySeals(ballots, policy),
    });
  }

  // The lease counts from before the first byte was sent: the nodes' keys began to run later, so
  // they outlast it (L2).
  #inTime(token: number): Outcome {
    const { clock, nodes, policy } = this.#context;
    const { resources, ttlMs, wait } = this.#wanted;
    const startMonotonicMs = this.#startMonotonicMs;
    const startWallMs = this.#startWallMs;
    const lastsMs = validityMs(ttlMs, policy.driftFactor);
    const leftMs = remainingMs(lastsMs, clock.monotonicMs() - startMonotonicMs, clock.wallMs() - startWallMs);
    if (leftMs < minValidityMs(ttlMs)) return this.#lose("too_slow", "no", leftMs);
    const granted = { resources, owner: this.#owner, token, ttlMs, startMonotonicMs, startWallMs, ticket: wait?.ticket };
    return { kind: "won", ...granted, nodes, votes: this.#grants };
  }

  #lose(reason: LossReason, verdict: Settled, leftMs?: number): Lost {
    const ballots = castBallots(this.#grants);
    const grants = ballots.filter(({ kind }) => kind === "granted" || kind === "epoch_moved").length;
    // Too slow: a quorum was kept from those that wait until now.
    const given = { resources: this.#wanted.resources, owner: this.#owner, tells: reason === "too_slow" };
    this.#onLate = (this.#wanted.wait === undefined ? giveBack : giveBackAsAnswered)(this.#context, given, this.#grants);
    const seals = castBallots(this.#seals);
    return { kind: "lost", reason, epochMoved: verdict === "epoch_moved", ballots, seals, grants, leftMs };
  }

  #publish(): void {
    if (this.#outcome === undefined || !this.#allAnswered || !channels.attempt.hasSubscribers) return;
    const outcome = this.#outcome;
    channels.attempt.publish({
      resources: this.#wanted.resources,
      outcome: outcome.kind === "won" ? "won" : outcome.reason,
      ...(outcome.kind === "won" ? { token: outcome.token } : {}),
      rounds: this.#seals.length === 0 ? 1 : 2,
      elapsedMs: this.#context.clock.monotonicMs() - this.#startMonotonicMs,
      ballots: castBallots(this.#grants),
    });
  }
}

// One attempt to take resources: a grant round, a seal round if the nodes did not agree on a token, what is left of the time, and everything given back if it was
// lost. An attempt never waits for anybody and is never repeated, except when the fleet's epoch moved under it.

import { minValidityMs } from "../options/policy.js";
import type { EpochMoved, GrantBallot, SealBallot } from "../protocol/ballot.js";
import { invariant, type LossReason } from "../protocol/errors.js";
import { channels } from "../protocol/events.js";
import type { Lost, Outcome, Wish } from "../protocol/outcome.js";
import { MAX_TOKEN } from "../protocol/token.js";
import { castBallots, holdRound } from "../quorum/round.js";
import { freeInMs, highestToken, tallyGrants, tallySeals, type Verdict } from "../quorum/tally.js";
import { remainingMs, validityMs } from "../quorum/validity.js";
import type { LeaseContext } from "./context.js";
import { giveBack } from "./release.js";

type CountedGrant = GrantBallot | EpochMoved;
type CountedSeal = SealBallot | EpochMoved;
type Settled = Exclude<Verdict, "open">;

/** An admission moves every epoch once; members that restart one after the other move them once each. */
const EPOCH_TRIES = 4;

export async function attempt(core: LeaseContext, wish: Wish): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    const outcome = await new Attempt(core, wish).run();
    if (outcome.kind === "won" || !outcome.epochMoved || tries >= EPOCH_TRIES) return outcome;
  }
}

class Attempt {
  readonly #core: LeaseContext;
  readonly #wish: Wish;
  readonly #owner: string;
  // Noted before the first byte leaves. A ballot of another epoch was cast after some member's memory had been rebuilt from this node: the token stored here was
  // not seen by that rebuilding, and the rebuilt member could help to issue it again (T2).
  readonly #epochs: readonly (string | undefined)[];
  readonly #startMonotonicMs: number;
  readonly #startWallMs: number;
  readonly #grants: (CountedGrant | undefined)[];
  #seals: (CountedSeal | undefined)[] = [];
  #outcome: Outcome | undefined;
  #complete = false;

  constructor(core: LeaseContext, wish: Wish) {
    this.#core = core;
    this.#wish = wish;
    this.#owner = core.clock.secret();
    this.#grants = new Array(core.nodes.length).fill(undefined);
    this.#epochs = core.nodes.map((node) => node.epoch());
    this.#startMonotonicMs = core.clock.monotonicMs();
    this.#startWallMs = core.clock.wallMs();
  }

  async run(): Promise<Outcome> {
    const granted = await this.#askGrants();
    this.#outcome = granted === "yes" ? await this.#store() : this.#lose(granted === "no" ? "held" : "no_quorum", granted);
    if (this.#complete) this.#publish(this.#outcome);
    return this.#outcome;
  }

  #askGrants(): Promise<Settled> {
    const { nodes, policy } = this.#core;
    const { resources, ttlMs, hasWaited } = this.#wish;
    const question = { resources, owner: this.#owner, label: policy.label, ttlMs, hasWaited };
    this.#core.work.begin();
    return holdRound<CountedGrant, Settled>({
      question: "grant",
      resources,
      nodes,
      ballots: this.#grants,
      ask: (node) => node.grant(question),
      accept: (ballot, i) =>
        ballot.kind === "granted" && ballot.epoch !== this.#epochs[i] ? { kind: "epoch_moved", node: ballot.node } : ballot,
      judge: (ballots) => tallyGrants(ballots, policy),
      complete: () => {
        this.#core.work.end();
        this.#complete = true;
        if (this.#outcome !== undefined) this.#publish(this.#outcome);
      },
    });
  }

  // A quorum of grants names the token: the highest of them. If a quorum granted exactly that, it is stored where every later quorum will meet it, and we are done
  // in one round trip. Otherwise it may live on a single node that the next winner's quorum does not contain, and that winner would be given a smaller one (T1).
  async #store(): Promise<Outcome> {
    const token = highestToken(this.#grants);
    invariant(token >= 1 && token <= MAX_TOKEN, `T1: a granted token is from 1 to ${MAX_TOKEN}, not ${token}`);
    let exact = 0;
    for (const ballot of this.#grants) if (ballot?.kind === "granted" && ballot.token === token) exact++;
    if (exact < this.#core.policy.quorum) {
      const sealed = await this.#askSeals(token);
      // "no": keys of ours had run out, or were removed, before they could be sealed.
      if (sealed !== "yes") return this.#lose(sealed === "no" ? "too_slow" : "no_quorum", sealed);
    }
    return this.#inTime(token);
  }

  // Only nodes that have granted by now are asked, each if it does not store the token already. It seals only where we are still the owner (T2).
  #askSeals(token: number): Promise<Settled> {
    const { nodes, policy } = this.#core;
    const question = { resources: this.#wish.resources, owner: this.#owner, token };
    this.#seals = nodes.map((node, i) => {
      const grant = this.#grants[i];
      if (grant?.kind !== "granted") return { kind: "unreachable", node: node.name, cause: "not asked to seal: it has not granted" };
      return grant.token === token ? { kind: "sealed", node: node.name, epoch: grant.epoch } : undefined;
    });
    this.#core.work.begin();
    return holdRound<CountedSeal, Settled>({
      question: "seal",
      resources: question.resources,
      nodes,
      ballots: this.#seals,
      ask: (node) => node.seal(question),
      accept: (ballot, i) =>
        ballot.kind === "sealed" && ballot.epoch !== this.#epochs[i] ? { kind: "epoch_moved", node: ballot.node } : ballot,
      judge: (ballots) => tallySeals(ballots, policy),
      complete: () => this.#core.work.end(),
    });
  }

  #inTime(token: number): Outcome {
    const { clock, policy } = this.#core;
    const { resources, ttlMs } = this.#wish;
    const startMonotonicMs = this.#startMonotonicMs;
    const startWallMs = this.#startWallMs;
    const lastsMs = validityMs(ttlMs, policy.driftFactor);
    const leftMs = remainingMs(lastsMs, clock.monotonicMs() - startMonotonicMs, clock.wallMs() - startWallMs);
    if (leftMs < minValidityMs(policy, ttlMs)) return this.#lose("too_slow", "no", leftMs);
    return { kind: "won", resources, owner: this.#owner, token, ttlMs, startMonotonicMs, startWallMs, votes: this.#grants };
  }

  #lose(reason: LossReason, verdict: Settled, leftMs?: number): Lost {
    giveBack(this.#core, { resources: this.#wish.resources, owner: this.#owner }, this.#grants);
    let grants = 0;
    for (const ballot of this.#grants) if (ballot?.kind === "granted" || ballot?.kind === "epoch_moved") grants++;
    return {
      kind: "lost",
      reason,
      epochMoved: verdict === "epoch_moved",
      ballots: castBallots(this.#grants),
      seals: castBallots(this.#seals),
      grants,
      freeInMs: freeInMs(this.#grants, this.#core.policy),
      leftMs,
    };
  }

  #publish(outcome: Outcome): void {
    if (!channels.attempt.hasSubscribers) return;
    const elapsedMs = this.#core.clock.monotonicMs() - this.#startMonotonicMs;
    channels.attempt.publish({
      resources: this.#wish.resources,
      outcome: outcome.kind === "won" ? "won" : outcome.reason,
      ...(outcome.kind === "won" ? { token: outcome.token } : {}),
      rounds: this.#seals.length === 0 ? 1 : 2,
      elapsedMs,
      ballots: castBallots(this.#grants),
    });
  }
}

// Takes over leases from their texts: nodes that have a text's owner give their keys to a new one.
// Each does so once, and two quorums share a node: of all who adopt one text at most one succeeds
// (L2).
import type { LeaseRequest } from "../options/lease-request.js";
import type { LeaseContext } from "./context.js";
import type { HandedOver } from "./hand-over.js";
import { HeldLease } from "./held-lease.js";
import { adoptionError } from "./messages.js";
import { releaseOn } from "./release.js";
import { renew } from "./renew.js";

interface Adopting extends Pick<LeaseRequest, "renew" | "maxHoldMs"> {
  /** Throws if the lease is not wanted any more. */
  check(): void;
}

/** Texts remembered; a forgotten one cannot be adopted again before its keys have run out. */
const MAX_UNSETTLED = 1_024;

export class Adoptions {
  readonly #context: LeaseContext;
  /**
   * By the owner in a text: the new owner of an adoption that too few nodes confirmed. Others may
   * have done it unheard, so the next try is for the same owner. Taken out while one is under way:
   * of two at once the second must have another owner.
   */
  readonly #unsettled = new Map<string, string>();

  constructor(context: LeaseContext) {
    this.#context = context;
  }

  async adopt(text: HandedOver, { check, ...keeping }: Adopting): Promise<HeldLease> {
    const { clock, inFlight } = this.#context;
    const adopted = { ...text, owner: this.#unsettled.get(text.owner) ?? clock.secret() };
    this.#unsettled.delete(text.owner);
    const startMonotonicMs = clock.monotonicMs();
    const startWallMs = clock.wallMs();
    let isWanted = () => true;
    inFlight.begin();
    try {
      const answer = await renew(this.#context, { ...adopted, giver: text.owner, isWanted: () => isWanted() });
      check();
      const { verdict, ballots } = answer;
      if (verdict === "unknown") this.#remember(text.owner, adopted.owner);
      if (verdict !== "renewed") throw adoptionError(text, answer, this.#context);
      const lease = new HeldLease(this.#context, { ...adopted, startMonotonicMs, startWallMs, votes: ballots }, keeping);
      isWanted = () => lease.held;
      lease.assertHeld();
      return lease;
    } catch (error) {
      isWanted = () => false;
      if (!this.#unsettled.has(text.owner))
        releaseOn(this.#context, { resources: adopted.resources, owner: adopted.owner, tells: true }, () => true);
      throw error;
    } finally {
      inFlight.end();
    }
  }

  #remember(giver: string, owner: string): void {
    if (this.#unsettled.size >= MAX_UNSETTLED) this.#unsettled.clear();
    this.#unsettled.set(giver, owner);
  }
}

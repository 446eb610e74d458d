// When the fleet is examined and which steps are taken: brings nodes back that lost their memory,
// founds new fleets, finishes a change of the members. Any number of lockers may do so at once,
// since every step is conditional on the node itself. No request waits for it: a node that is not
// admitted answers `quarantined` meanwhile. Why the steps make tokens unique is in docs/decisions/0001.
import type { Timer } from "../../platform/clock.js";
import type { RedisFleet } from "../fleet.js";
import type { RedisNode } from "../node.js";
import { generationNumber, isClosed } from "../record.js";
import { agree, leadIn } from "./members.js";
import { planAdmission, type SeenNode, type Step } from "./plan.js";
import { admitAll, examineNode, foundFleet, nodeCalled, type ReadStatus, readStatuses } from "./steps.js";

/** Others may have admitted the node, or founded the fleet. */
const OTHERS_POLL_MS = 40;
/** When other lockers have achieved nothing for so long, the fleet is examined less often. */
const OTHERS_TAKE_MS = 1_000;
/**
 * An admission reads the floors of other nodes, which makes acquisitions under way begin anew. One
 * that failed is tried again only so late, however many lockers there are.
 */
const ADMIT_AGAIN_MS = 1_000;
const BLOCKED_POLL_MS = 1_000;
const SILENT_POLL_MS = 500;
/** A changer needs two round trips from the first node that closes until the first that opens. */
const FINISH_AFTER_MS = 400;

/** When to examine the fleet again: at once, after some time, or when there is news. */
type Next = "now" | number | "on news";

export class Admission {
  readonly #fleet: RedisFleet;
  #timer: Timer | undefined;
  #examining: Promise<void> | undefined;
  #hasNews = false;
  #hasMetAll = false;
  #isClosed = false;
  /** When it carries on the change of a node that has accepted a generation which is not open. */
  #finishAt: number | undefined;
  #admitAgainAt = 0;
  /** Since when others may be at work and nothing has come of it. */
  #waitingSince: number | undefined;
  #settle: (() => void) | undefined;
  /** Resolves when nothing more could be done at once. */
  readonly settled: Promise<void>;

  constructor(fleet: RedisFleet) {
    this.#fleet = fleet;
    fleet.onNews = () => this.#onNews();
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    void Promise.all(fleet.configured.map((node) => node.met())).then(() => {
      this.#hasMetAll = true;
      this.#examine();
    });
  }

  // The fleet is first examined when every node was reached or could not be; later whenever there is
  // news.
  #onNews(): void {
    if (this.#isClosed) return;
    if (this.#examining !== undefined || !this.#hasMetAll) this.#hasNews = true;
    else this.#examineIn(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#fleet.clock.clearTimer(this.#timer);
    this.#settle?.();
  }

  #examineIn(ms: number): void {
    const { clock } = this.#fleet;
    clock.clearTimer(this.#timer);
    this.#timer = clock.setBackgroundTimer(ms, () => this.#examine());
  }

  #examine(): void {
    if (this.#isClosed || this.#examining !== undefined) return;
    this.#fleet.clock.clearTimer(this.#timer);
    this.#hasNews = false;
    this.#examining = this.#takeSteps().then((step) => {
      this.#examining = undefined;
      const next = this.#unlessInVain(step);
      if (next !== "now" && next !== OTHERS_POLL_MS) this.#settle?.();
      if (this.#isClosed) return;
      if (next === "now" || this.#hasNews) this.#examineIn(0);
      else if (next !== "on news") this.#examineIn(next * (1 + this.#fleet.clock.random() / 4));
    });
  }

  /** Rarely, where lockers have tried for long: a node that refuses one refuses the others too. */
  #unlessInVain(next: Next): Next {
    const now = this.#fleet.clock.monotonicMs();
    this.#waitingSince = next === OTHERS_POLL_MS ? (this.#waitingSince ?? now) : undefined;
    return now - (this.#waitingSince ?? now) < OTHERS_TAKE_MS ? next : BLOCKED_POLL_MS;
  }

  /** Never rejects: nodes that cannot be asked are not seen. */
  async #takeSteps(): Promise<Next> {
    const fleet = this.#fleet;
    const { members } = fleet;
    await Promise.all(members.map((node) => node.met()));
    const statuses = await readStatuses(fleet);
    fleet.look();
    if (this.#isClosed) return "on news";
    if (fleet.members !== members) return "now";
    // The mismatch may be repaired: a status may be old, and an operator may be about to clear the
    // node.
    if (fleet.refusal !== undefined) return BLOCKED_POLL_MS;
    if (await this.#takePartInChange(statuses)) return "now";
    const ours = statuses.filter(({ node }) => fleet.members.includes(node) && !node.isExcluded);
    const opened = await Promise.all(
      ours.filter((read) => !this.#isChanging(read)).map(({ node, status }) => examineNode(fleet, node, status)),
    );
    const seen = opened.filter((node) => node !== undefined && node !== "changed since");
    const unseen = fleet.members.filter(({ name }) => !seen.some((node) => node.name === name)).map(placeOf);
    const steps = planAdmission({ size: fleet.members.length, roster: fleet.roster, knownForMs: fleet.knownForMs, seen, unseen });
    if (steps.length > 0) return this.#carryOut(steps);
    return opened.includes("changed since") ? "now" : this.#rest();
  }

  /**
   * A member that has accepted the next generation. One that left then, and is a member again, is
   * rebuilt like a new one.
   */
  #isChanging({ node, status }: ReadStatus): boolean {
    const fleet = this.#fleet;
    const sinceGeneration = fleet.memberAt(node)?.since ?? 0;
    return isClosed(status) && fleet.members.includes(node) && generationNumber(status.admission?.generation ?? "") >= sinceGeneration;
  }

  /**
   * Leads members that were away into the present generation, and finishes a change whose changer
   * has stopped half-way. True if the fleet looks otherwise now.
   */
  async #takePartInChange(statuses: readonly ReadStatus[]): Promise<boolean> {
    const fleet = this.#fleet;
    if (await leadIn(fleet, statuses)) return true;
    const isChanging = statuses.some((read) => this.#isChanging(read));
    if (!isChanging) {
      this.#finishAt = undefined;
      return false;
    }
    const now = fleet.clock.monotonicMs();
    // Not all lockers at once: of those that carry it on together each outbids the others.
    this.#finishAt ??= now + FINISH_AFTER_MS * (1 + 3 * fleet.clock.random());
    if (now < this.#finishAt) return false;
    this.#finishAt = undefined;
    const outcome = await agree(fleet, statuses, () => undefined);
    return outcome.kind === "agreed";
  }

  /**
   * Nothing is left to do for the nodes that answered. A node that was silent is asked again: it
   * tells nothing of itself when it can answer again on the same connection. So is one that is not
   * the member in whose stead it answers: an operator may clear it.
   */
  #rest(): Next {
    this.#fleet.blockedBecause = undefined;
    if (this.#finishAt !== undefined) return FINISH_AFTER_MS / 2;
    if (this.#isAnySilent([])) return SILENT_POLL_MS;
    return this.#fleet.members.some(({ isExcluded }) => isExcluded) ? BLOCKED_POLL_MS : "on news";
  }

  /** Quarantined and silent, besides the nodes that these steps wait for. */
  #isAnySilent(steps: readonly { readonly node: SeenNode }[]): boolean {
    const awaited = new Set(steps.map(({ node }) => node.name));
    return this.#fleet.members.some(({ name, isQuarantined, connection }) => isQuarantined && connection.isUp && !awaited.has(name));
  }

  async #carryOut(steps: readonly Step[]): Promise<Next> {
    const [first] = steps;
    if (first?.kind === "blocked") return this.#blocked(first);
    this.#fleet.blockedBecause = undefined;
    if (first?.kind === "found") {
      const outcome = await foundFleet(this.#fleet, first.nodes);
      if (outcome.kind === "blocked") return this.#blocked(outcome);
      return outcome.kind === "founded" ? "now" : OTHERS_POLL_MS;
    }
    const singles = steps.filter((step) => step.kind !== "found" && step.kind !== "blocked");
    for (const step of singles) this.#awaits(step);
    const due = singles.filter((step) => leftToWait(step) === 0);
    if (due.length > 0) return this.#admit(due);
    const waitMs = Math.max(1, Math.min(...singles.map(leftToWait)));
    return this.#isAnySilent(singles) ? Math.min(waitMs, SILENT_POLL_MS) : waitMs;
  }

  /** It answered what it was asked, and nothing but time is missing. */
  #awaits(step: Parameters<typeof leftToWait>[0]): void {
    const node = nodeCalled(this.#fleet, step.node.name);
    const waitMs = leftToWait(step);
    node?.noteReadyIn(waitMs);
    if (node !== undefined && waitMs > 0) node.blockedBecause = undefined;
  }

  async #admit(due: Parameters<typeof admitAll>[1]): Promise<Next> {
    const { clock } = this.#fleet;
    if (clock.monotonicMs() < this.#admitAgainAt) return OTHERS_POLL_MS;
    if (await admitAll(this.#fleet, due)) return "now";
    this.#admitAgainAt = clock.monotonicMs() + ADMIT_AGAIN_MS;
    return OTHERS_POLL_MS;
  }

  #blocked({ nodes, reason }: Extract<Step, { kind: "blocked" }>): Next {
    for (const { name } of nodes) {
      const node = nodeCalled(this.#fleet, name);
      if (node !== undefined) node.blockedBecause = reason;
    }
    if (reason !== this.#fleet.blockedBecause) {
      this.#fleet.blockedBecause = reason;
      this.#fleet.onEvent({ kind: "admission_blocked", nodes: nodes.map(({ name }) => name), reason });
    }
    return BLOCKED_POLL_MS;
  }
}

/** Where it is, and why it refuses where it can be reached. */
function placeOf({ name, address, connection, blockedBecause }: RedisNode): string {
  return `${name} at ${address}${connection.isUp && blockedBecause !== undefined ? ` (${blockedBecause})` : ""}`;
}

function leftToWait(step: Exclude<Step, { kind: "found" | "blocked" }>): number {
  return step.kind === "durable" ? 0 : step.waitMs;
}

// When the fleet is examined and which steps are taken: excludes a fleet that this locker must not
// use, brings nodes back that lost their memory, founds new fleets. Any number of lockers may do so
// at once, since every step is conditional on the node itself. No request waits for it: a node that
// is not admitted answers `quarantined` meanwhile. Why the steps make tokens unique is in
// docs/adr/0001.
import type { Timer } from "../../platform/clock.js";
import type { FleetRefusal } from "../../protocol/fleet.js";
import type { RedisNode } from "../node.js";
import { fleetMaxTtlMs, fleetRefusal, type MetNode } from "./fleet-check.js";
import { planAdmission, type SeenNode, type Step } from "./plan.js";
import { type AdmissionSettings, admitAll, examineNode, found, readStatuses } from "./steps.js";

const OTHERS_LEAD_POLL_MS = 40;
const BLOCKED_POLL_MS = 1_000;
const SILENT_POLL_MS = 500;

/** When to examine the fleet again: at once, after some time, or when there is news. */
type Next = "now" | number | "on news";

export class Admission {
  readonly #settings: AdmissionSettings;
  #timer: Timer | undefined;
  #examining: Promise<void> | undefined;
  #hasNews = false;
  #hasMetAll = false;
  #isClosed = false;
  #refusal: FleetRefusal | undefined;
  #blockedBecause: string | undefined;
  #settle: (() => void) | undefined;
  /** Resolves when nothing more could be done at once. */
  readonly settled: Promise<void>;

  constructor(settings: AdmissionSettings) {
    this.#settings = settings;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    void Promise.all(settings.nodes.map((node) => node.met())).then(() => {
      this.#hasMetAll = true;
      this.#examine();
    });
  }

  get refusal(): FleetRefusal | undefined {
    return this.#refusal;
  }

  /** The longest lease the fleet allows, once known. */
  get maxTtlMs(): number | undefined {
    return fleetMaxTtlMs(this.#met());
  }

  get blockedBecause(): string | undefined {
    return this.#blockedBecause;
  }

  /**
   * A node was reached, or answered that it is not admitted. Refusals are known before the node can
   * be asked anything.
   */
  onNews(): void {
    if (this.#isClosed) return;
    this.#check();
    // The fleet is first examined when every node was reached or could not be; later whenever there
    // is news.
    if (this.#examining !== undefined || !this.#hasMetAll) this.#hasNews = true;
    else this.#examineIn(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#settings.clock.clearTimer(this.#timer);
    this.#settle?.();
  }

  #met(): readonly MetNode[] {
    return this.#settings.nodes.flatMap(({ name, address, status }) => (status === undefined ? [] : [{ name, address, status }]));
  }

  #check(): void {
    const before = this.#refusal;
    const refusal = fleetRefusal(this.#met(), this.#settings.expected);
    if (refusal?.message === before?.message) return;
    this.#refusal = refusal;
    this.#settings.onRefusal(refusal);
    const exclusion = refusal === undefined ? undefined : `FLEET_MISMATCH: ${refusal.message}`;
    for (const node of this.#settings.nodes) node.exclude(exclusion);
    // The same mismatch, seen at another node, is not published again.
    if (refusal !== undefined && refusal.code !== before?.code) this.#settings.onEvent({ kind: "fleet_refused", reason: refusal.message });
  }

  #examineIn(ms: number): void {
    const { clock } = this.#settings;
    clock.clearTimer(this.#timer);
    this.#timer = clock.setBackgroundTimer(ms, () => this.#examine());
  }

  #examine(): void {
    if (this.#isClosed || this.#examining !== undefined) return;
    this.#settings.clock.clearTimer(this.#timer);
    this.#hasNews = false;
    this.#examining = this.#takeSteps().then((next) => {
      this.#examining = undefined;
      if (next !== "now" && next !== OTHERS_LEAD_POLL_MS) this.#settle?.();
      if (this.#isClosed) return;
      if (next === "now" || this.#hasNews) this.#examineIn(0);
      else if (next !== "on news") this.#examineIn(next * (1 + this.#settings.clock.random() / 4));
    });
  }

  /** Never rejects: nodes that cannot be asked are not seen. */
  async #takeSteps(): Promise<Next> {
    const settings = this.#settings;
    const statuses = await readStatuses(settings);
    this.#check();
    if (this.#isClosed) return "on news";
    // The mismatch may be repaired: a status may be old, and an operator may be about to clear the
    // node.
    if (this.#refusal !== undefined) return BLOCKED_POLL_MS;
    const opened = await Promise.all(statuses.map(({ node, status }) => examineNode(settings, node, status)));
    const seen = opened.filter((node) => node !== undefined && node !== "changed since");
    const steps = planAdmission({ size: settings.expected.size, seen });
    if (steps.length > 0) return this.#carryOut(steps);
    return opened.includes("changed since") ? "now" : this.#rest();
  }

  /**
   * Nothing is left to do for the nodes that answered. One that was silent gives no news when it
   * answers again on the same connection.
   */
  #rest(): Next {
    this.#blockedBecause = undefined;
    return this.#isAnySilent([]) ? SILENT_POLL_MS : "on news";
  }

  /** Quarantined and silent, besides the nodes that these steps wait for. */
  #isAnySilent(steps: readonly { readonly node: SeenNode }[]): boolean {
    const awaited = new Set(steps.map(({ node }) => node.name));
    return this.#settings.nodes.some(({ name, isQuarantined, connection }) => isQuarantined && connection.isUp && !awaited.has(name));
  }

  async #carryOut(steps: readonly Step[]): Promise<Next> {
    const [first] = steps;
    if (first?.kind === "blocked") return this.#blocked(first);
    this.#blockedBecause = undefined;
    if (first?.kind === "found") return (await found(this.#settings, first.nodes)) ? "now" : OTHERS_LEAD_POLL_MS;
    const singles = steps.filter((step) => step.kind !== "found" && step.kind !== "blocked");
    for (const step of singles) this.#nodeOf(step.node)?.noteReadyIn(waitOf(step));
    const due = singles.filter((step) => waitOf(step) === 0);
    const ours = due.filter((step) => step.node.opened?.leads);
    if (ours.length > 0) return (await admitAll(this.#settings, ours)) ? "now" : OTHERS_LEAD_POLL_MS;
    if (due.length > 0) return OTHERS_LEAD_POLL_MS;
    const waitMs = Math.max(1, Math.min(...singles.map(waitOf)));
    return this.#isAnySilent(singles) ? Math.min(waitMs, SILENT_POLL_MS) : waitMs;
  }

  #blocked({ nodes, reason }: Extract<Step, { kind: "blocked" }>): Next {
    if (reason !== this.#blockedBecause) {
      this.#blockedBecause = reason;
      this.#settings.onEvent({ kind: "admission_blocked", nodes: nodes.map(({ name }) => name), reason });
    }
    return BLOCKED_POLL_MS;
  }

  #nodeOf({ name }: SeenNode): RedisNode | undefined {
    return this.#settings.nodes.find((node) => node.name === name);
  }
}

function waitOf(step: Exclude<Step, { kind: "found" | "blocked" }>): number {
  return step.kind === "durable" ? 0 : step.waitMs;
}

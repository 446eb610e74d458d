// One caller: what a part of an application does with a locker, one act after another, drawn by chance. Reports what it was given to the register, and ends when the world
// is over. In the calm after the storm it is strict: there every question must succeed.
import { LockError } from "#lock/protocol/errors.js";
import type { Lease } from "#lock/protocol/lease.js";
import { validityMs } from "#lock/quorum/validity.js";
import type { Chance } from "../engine/chance.js";
import type { ClientProcess } from "../engine/client-process.js";
import { judgeAttempt, judgeLease } from "./ballot-check.js";
import type { Claim, Register } from "./register.js";
import type { Rules } from "./rules.js";
import type { Scenario } from "./scenario.js";
import type { ServerOracle } from "./server-oracle.js";
import type { Station } from "./station.js";

/** What a caller can see of the world around it. */
export interface Surroundings {
  readonly now: () => number;
  readonly scenario: Scenario;
  readonly register: Register;
  readonly rules: Rules;
  readonly oracle: ServerOracle;
  phase(): "storm" | "recovery" | "calm";
  other(than: Station): Station | undefined;
  onHandedOver(text: string): void;
  readonly tell: ((actor: string, what: string) => void) | undefined;
}

type Act = (caller: Caller) => Promise<void>;

const acts: readonly (readonly [number, Act])[] = [
  [440, (caller) => caller.acquireOne()],
  [300, (caller) => caller.tryOne()],
  [90, (caller) => caller.acquireSeveral()],
  [60, (caller) => caller.useOne()],
  [40, (caller) => caller.stayToTheEnd()],
  [50, (caller) => caller.giveUpWaiting()],
  [25, (caller) => caller.handOver()],
  [6, (caller) => caller.forceOne()],
  [17, (caller) => caller.askWhetherIssued()],
];
const allWeights = acts.reduce((sum, [weight]) => sum + weight, 0);

const CALM_ACTS = 3;

export class Caller {
  isDone = false;
  /** What it is doing, since when. */
  doing = "begins";
  readonly #station: Station;
  /** The life of the process it belongs to. */
  readonly #process: ClientProcess;
  readonly #around: Surroundings;
  readonly #chance: Chance;
  #last: { readonly resource: string; readonly token: number } | undefined;

  constructor(station: Station, around: Surroundings, chance: Chance) {
    this.#station = station;
    this.#process = station.process;
    this.#around = around;
    this.#chance = chance;
  }

  async run(): Promise<void> {
    while (this.#around.phase() !== "calm") {
      await this.#act(this.#around.phase() === "storm" ? this.#draw() : acts[0]?.[1]);
      await this.sleep(this.#around.phase() === "recovery" ? this.#chance.between(100, 400) : 6 * this.#chance.next() ** 3);
    }
    for (let i = 0; i < CALM_ACTS; i++) await this.#act((caller) => caller.acquireStrictly());
    this.#doing("is done");
    this.isDone = true;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#process.setTimer(ms, resolve));
  }

  async acquireOne(): Promise<void> {
    const { scenario } = this.#around;
    const resource = this.#resource();
    const waitMs = this.#chance.next() < 0.2 ? Number.POSITIVE_INFINITY : Math.floor(this.#chance.between(0, 3 * scenario.ttlMs));
    const claim = await this.#acquire([resource], { waitMs, ttlMs: this.#ttlMs(), renew: this.#chance.next() < 0.2 });
    await this.#hold(claim);
    if (this.#chance.next() < 0.1) await this.#extend(claim);
    await this.#release(claim);
  }

  async acquireSeveral(): Promise<void> {
    const { scenario } = this.#around;
    const wanted = new Set([this.#resource(), this.#resource(), this.#resource()]);
    const claim = await this.#acquire([...wanted], { waitMs: scenario.ttlMs });
    await this.#hold(claim);
    await this.#release(claim);
  }

  async acquireStrictly(): Promise<void> {
    const claim = await this.#acquire([this.#resource()], { waitMs: 60_000 });
    await this.sleep(2 * this.#chance.next());
    await this.#release(claim);
  }

  async tryOne(): Promise<void> {
    const resource = this.#resource();
    this.#doing(`tries ${resource}`);
    const calledAt = this.#around.now();
    const outcome = await this.#station.locker.tryAcquire(resource);
    judgeAttempt(this.#around, this.#process, { resource, outcome });
    if (!outcome.ok) return;
    const claim = this.#given(outcome.lease, { calledAt, ttlMs: this.#around.scenario.ttlMs });
    await this.#hold(claim);
    await this.#release(claim);
  }

  async useOne(): Promise<void> {
    const { scenario } = this.#around;
    const resource = this.#resource();
    this.#doing(`wants to use ${resource}`);
    const calledAt = this.#around.now();
    await this.#station.locker.using(resource, { waitMs: scenario.ttlMs }, async (lease) => {
      const claim = this.#given(lease, { calledAt, ttlMs: scenario.ttlMs });
      await Promise.race([this.sleep(this.#chance.next() ** 8 * 3 * scenario.ttlMs), this.#untilTold(claim)]);
      claim.endedAt ??= this.#around.now();
    });
  }

  async stayToTheEnd(): Promise<void> {
    const ttlMs = this.#ttlMs();
    const claim = await this.#acquire([this.#resource()], { waitMs: ttlMs, ttlMs, renew: this.#chance.next() < 0.3, maxHoldMs: 3 * ttlMs });
    this.#doing(`stays with ${claim.resources[0]} to the end`);
    await this.#untilTold(claim);
    await claim.lease.release();
  }

  async giveUpWaiting(): Promise<void> {
    const controller = new AbortController();
    const timer = this.#process.setTimer(this.#chance.next() * 40, () => controller.abort());
    const claim = await this.#acquire([this.#resource()], { signal: controller.signal });
    this.#process.clearTimer(timer);
    await this.#hold(claim);
    await this.#release(claim);
  }

  async handOver(): Promise<void> {
    const claim = await this.#acquire([this.#resource()], { waitMs: this.#around.scenario.ttlMs });
    const other = this.#around.other(this.#station);
    if (other === undefined || !claim.lease.held) {
      await this.#release(claim);
      return;
    }
    const text = claim.lease.serialize();
    claim.endedAt = this.#around.now();
    const { process } = other;
    this.#around.tell?.(this.#process.name, `hands lease ${claim.token} over to ${process.name}`);
    // From here on it is the other one's to give back, whether or not it lives to do so.
    this.#around.onHandedOver(text);
    await new Promise<void>((resolve) => {
      this.#process.setTimer(this.#around.scenario.ttlMs, resolve);
      process.soon(() => {
        void this.#adopt(other, claim, text).then(() => this.#process.soon(resolve));
      });
    });
  }

  async forceOne(): Promise<void> {
    const resource = this.#resource();
    this.#doing(`removes the holder of ${resource}`);
    const { fence } = await this.#station.locker.forceRelease(resource, { reason: "simulated operator" });
    this.#around.register.fenced(resource, fence);
    this.#around.tell?.(this.#process.name, `has fenced ${resource} at ${fence}`);
  }

  async askWhetherIssued(): Promise<void> {
    const last = this.#last;
    if (last === undefined) return;
    this.#doing(`asks whether ${last.token} was issued`);
    if (await this.#station.locker.issued(last.resource, last.token)) return;
    this.#around.register.break(
      "issued",
      `${last.token} of ${last.resource} was given to ${this.#process.name}, and is said not to have been`,
    );
  }

  #draw(): Act {
    let left = this.#chance.next() * allWeights;
    for (const [weight, act] of acts) {
      left -= weight;
      if (left < 0) return act;
    }
    return (caller) => caller.tryOne();
  }

  async #act(act: Act | undefined): Promise<void> {
    try {
      await act?.(this);
    } catch (error) {
      this.#refused(error);
    }
  }

  #refused(error: unknown): void {
    const { register, phase, tell } = this.#around;
    const isAnswer = error instanceof LockError && error.code !== "FLEET_MISMATCH";
    tell?.(this.#process.name, isAnswer ? `is refused: ${error.message}` : `fails: ${String(error)}`);
    if (!isAnswer) register.break("rejection", `${this.#process.name}: ${error instanceof Error ? error.stack : String(error)}`);
    else if (phase() === "calm" && this.doing.startsWith("strictly"))
      register.break("forgotten", `${this.#process.name} was refused on a fleet that is well: ${error.message}`);
  }

  async #acquire(resources: readonly string[], options: Parameters<Station["locker"]["acquire"]>[1] & object): Promise<Claim> {
    this.#doing(`${this.#around.phase() === "calm" ? "strictly " : ""}wants ${resources.join(" and ")}`);
    const calledAt = this.#around.now();
    const lease = await this.#station.locker.acquire(resources, options);
    return this.#given(lease, { calledAt, ttlMs: options.ttlMs ?? this.#around.scenario.ttlMs });
  }

  #given(lease: Lease, asked: { readonly calledAt: number; readonly ttlMs: number }): Claim {
    const { now, register, rules, tell } = this.#around;
    const lastsMs = validityMs(asked.ttlMs, this.#station.policy.driftFactor);
    const leftMs = lease.remainingMs();
    const asks = rules.countsFrom === "last reply" ? "itself" : "the lease";
    const claim: Claim = {
      client: this.#process,
      lease,
      resources: lease.resources,
      token: lease.token,
      // Its attempt began when its time began to count; a wall clock that was set ahead makes that look earlier.
      beganAt: Math.max(asked.calledAt, this.#process.trueMoment(leftMs - lastsMs)),
      grantedAt: now(),
      validUntilAt: this.#process.trueMoment(asks === "itself" ? lastsMs : leftMs),
      endedAt: undefined,
      asks,
    };
    tell?.(this.#process.name, `has ${lease.resources.join(" and ")} with token ${lease.token} for ${leftMs.toFixed(1)} ms`);
    this.#last = { resource: lease.resource, token: lease.token };
    register.given(claim);
    judgeLease(this.#around, claim);
    this.#doing(`holds ${lease.resources.join(" and ")}`);
    return claim;
  }

  /** Mostly for a moment, now and then too long. */
  async #hold(claim: Claim): Promise<void> {
    const x = this.#chance.next();
    await this.sleep(x < 0.02 ? this.#around.scenario.ttlMs * 1.2 : 4 * x ** 3);
    if (!claim.lease.held) claim.endedAt ??= this.#around.now();
  }

  async #extend(claim: Claim): Promise<void> {
    const ttlMs = Math.max(this.#ttlMs(), this.#around.scenario.ttlMs >> 1);
    const extending = claim.lease.extend(ttlMs);
    claim.validUntilAt = Math.min(claim.validUntilAt, this.#process.trueMoment(claim.lease.remainingMs()));
    const { remainingMs } = await extending;
    claim.validUntilAt = this.#process.trueMoment(remainingMs);
  }

  async #release({ lease, token }: Claim & { endedAt: number | undefined }): Promise<void> {
    for (const claim of this.#around.register.claims(lease.resource)) if (claim.lease === lease) claim.endedAt ??= this.#around.now();
    this.#around.tell?.(this.#process.name, `gives ${lease.resources.join(" and ")} back (token ${token})`);
    await lease.release();
  }

  async #adopt(other: Station, from: Claim, text: string): Promise<void> {
    const { process, locker } = other;
    const { register, now } = this.#around;
    try {
      const lease = await locker.adopt(text);
      const validUntilAt = process.trueMoment(lease.remainingMs());
      const claim: Claim = { ...from, client: process, lease, grantedAt: now(), validUntilAt, endedAt: undefined };
      register.handedOver(claim);
      await new Promise<void>((resolve) => process.setTimer(3 * this.#chance.next(), resolve));
      claim.endedAt ??= now();
      await lease.release();
    } catch (error) {
      this.#refused(error);
    }
  }

  async #untilTold(claim: Claim): Promise<void> {
    const { signal } = claim.lease;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    if (claim.endedAt === undefined) this.#around.register.told(claim);
  }

  #resource(): string {
    return `r${this.#chance.below(this.#around.scenario.resources)}`;
  }

  #ttlMs(): number {
    const { ttlMs } = this.#around.scenario;
    return this.#chance.next() < 0.7 ? ttlMs : Math.floor(ttlMs * this.#chance.between(0.3, 1));
  }

  #doing(what: string): void {
    this.doing = what;
    this.#around.tell?.(this.#process.name, what);
  }
}

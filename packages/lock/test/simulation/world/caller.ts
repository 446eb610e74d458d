// One caller: uses a locker as part of an application would, one act after another, drawn by
// chance, and reports its leases to the lease checker. In the calm after the storm every request
// must succeed.
import { LockError } from "#lock/protocol/ballot.js";
import type { Lease } from "#lock/protocol/locker.js";
import type { Chance } from "../engine/chance.js";
import type { ClientProcess } from "../engine/client-process.js";
import { judgeAttempt } from "./ballot-check.js";
import { extended, type Given, given, released, untilEnd } from "./holdings.js";
import type { Host } from "./host.js";
import type { Holding } from "./lease-checker.js";
import type { Surroundings } from "./surroundings.js";

type Act = (caller: Caller) => Promise<void>;

const acts: readonly (readonly [number, Act])[] = [
  [440, (caller) => caller.acquireOne()],
  [300, (caller) => caller.tryOne()],
  [90, (caller) => caller.acquireSeveral()],
  [60, (caller) => caller.useOne()],
  [40, (caller) => caller.stayToTheEnd()],
  [50, (caller) => caller.giveUpWaiting()],
  [6, (caller) => caller.forceOne()],
  [17, (caller) => caller.askWhetherIssued()],
];
/** Where all wait for their turns. */
const turns: typeof acts = [
  [700, (caller) => caller.waitForTurn()],
  [150, (caller) => caller.acquireSeveral()],
  [150, (caller) => caller.giveUpWaiting()],
];
const sum = (weighed: typeof acts): number => weighed.reduce((total, [weight]) => total + weight, 0);
const allWeights = { anything: sum(acts), turns: sum(turns) };

const CALM_ACTS = 3;

export class Caller {
  isDone = false;
  /** What it is doing, for the trace and for reports. */
  doing = "begins";
  readonly #host: Host;
  /** The process that it belongs to: the host may run another one later. */
  readonly #process: ClientProcess;
  readonly #around: Surroundings;
  readonly #chance: Chance;
  #last: { readonly resource: string; readonly token: number } | undefined;

  constructor(host: Host, around: Surroundings, chance: Chance) {
    this.#host = host;
    this.#process = host.process;
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
    const holding = await this.#acquire([resource], {
      waitMs,
      ttlMs: this.#ttlMs(),
      renew: this.#chance.next() < 0.2,
    });
    await this.#hold(holding);
    if (this.#chance.next() < 0.1) await extended(holding, Math.max(this.#ttlMs(), scenario.ttlMs >> 1));
    await released(this.#around, holding);
  }

  async waitForTurn(): Promise<void> {
    const holding = await this.#acquire([this.#resource()], { waitMs: Number.POSITIVE_INFINITY });
    await this.#hold(holding);
    await released(this.#around, holding);
  }

  async acquireSeveral(): Promise<void> {
    const { scenario } = this.#around;
    const wanted = new Set([this.#resource(), this.#resource(), this.#resource()]);
    const holding = await this.#acquire([...wanted], { waitMs: scenario.ttlMs });
    await this.#hold(holding);
    await released(this.#around, holding);
  }

  async acquireStrictly(): Promise<void> {
    const holding = await this.#acquire([this.#resource()], { waitMs: 60_000 });
    await this.sleep(2 * this.#chance.next());
    await released(this.#around, holding);
  }

  async tryOne(): Promise<void> {
    const resource = this.#resource();
    this.#doing(`tries ${resource}`);
    const calledAt = this.#around.now();
    const outcome = await this.#host.locker.tryAcquire(resource);
    judgeAttempt(this.#around, this.#process, { resource, outcome });
    if (!outcome.ok) return;
    const holding = this.#given(outcome.lease, { calledAt, ttlMs: this.#around.scenario.ttlMs });
    await this.#hold(holding);
    await released(this.#around, holding);
  }

  async useOne(): Promise<void> {
    const { scenario } = this.#around;
    const resource = this.#resource();
    this.#doing(`wants to use ${resource}`);
    const calledAt = this.#around.now();
    await this.#host.locker.using(resource, { waitMs: scenario.ttlMs }, async (lease) => {
      const holding = this.#given(lease, { calledAt, ttlMs: scenario.ttlMs });
      await Promise.race([this.sleep(this.#chance.next() ** 8 * 3 * scenario.ttlMs), untilEnd(this.#around, holding)]);
      holding.endedAt ??= this.#around.now();
    });
  }

  async stayToTheEnd(): Promise<void> {
    const ttlMs = this.#ttlMs();
    const holding = await this.#acquire([this.#resource()], {
      waitMs: ttlMs,
      ttlMs,
      renew: this.#chance.next() < 0.3,
      maxHoldMs: 3 * ttlMs,
    });
    this.#doing(`stays with ${holding.resources[0]} to the end`);
    await untilEnd(this.#around, holding);
    await holding.lease.release();
  }

  async giveUpWaiting(): Promise<void> {
    const controller = new AbortController();
    const timer = this.#process.setTimer(this.#chance.next() * 40, () => controller.abort());
    const holding = await this.#acquire([this.#resource()], { signal: controller.signal });
    this.#process.clearTimer(timer);
    await this.#hold(holding);
    await released(this.#around, holding);
  }

  async forceOne(): Promise<void> {
    const resource = this.#resource();
    this.#doing(`removes the holder of ${resource}`);
    const { fence } = await this.#host.locker.fleet.forceRelease(resource, { reason: "simulated operator" });
    this.#around.checker.fenced(resource, fence);
    this.#around.log?.(this.#process.name, `has fenced ${resource} at ${fence}`);
  }

  async askWhetherIssued(): Promise<void> {
    const last = this.#last;
    if (last === undefined) return;
    this.#doing(`asks whether ${last.token} was issued`);
    if (await this.#host.locker.fleet.issued(last.resource, last.token)) return;
    this.#around.checker.break(
      "issued",
      `${last.token} of ${last.resource} was given to ${this.#process.name}, and is said not to have been`,
    );
  }

  #draw(): Act {
    const { wants } = this.#around.scenario;
    let left = this.#chance.next() * allWeights[wants];
    for (const [weight, act] of wants === "turns" ? turns : acts) {
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
    const { checker, phase, log } = this.#around;
    const isAnswer = error instanceof LockError && error.code !== "FLEET_MISMATCH";
    log?.(this.#process.name, isAnswer ? `is refused: ${error.message}` : `fails: ${String(error)}`);
    if (!isAnswer) checker.break("rejection", `${this.#process.name}: ${error instanceof Error ? error.stack : String(error)}`);
    else if (phase() === "calm" && this.doing.startsWith("strictly"))
      checker.break("forgotten", `${this.#process.name} was refused on a fleet that is well: ${error.message}`);
  }

  async #acquire(resources: readonly string[], options: Parameters<Host["locker"]["acquire"]>[1] & object): Promise<Holding> {
    this.#doing(`${this.#around.phase() === "calm" ? "strictly " : ""}wants ${resources.join(" and ")}`);
    const calledAt = this.#around.now();
    // Before it has met the nodes it has no place among those that wait.
    const hasMet = this.#host.fleet.state().admitted.length === this.#around.scenario.nodes;
    const isOver = hasMet ? this.#around.turns?.waits(this.#process, resources) : undefined;
    let lease: Lease;
    try {
      lease = await this.#host.locker.acquire(resources, options);
    } finally {
      isOver?.();
    }
    return this.#given(lease, { calledAt, ttlMs: options.ttlMs ?? this.#around.scenario.ttlMs });
  }

  #given(lease: Lease, asked: Pick<Given, "calledAt" | "ttlMs">): Holding {
    const holding = given(this.#around, {
      ...asked,
      client: this.#process,
      driftFactor: this.#host.policy.driftFactor,
      lease,
    });
    this.#around.turns?.given(holding, asked.calledAt);
    this.#last = { resource: lease.resource, token: lease.token };
    this.#doing(`holds ${lease.resources.join(" and ")}`);
    return holding;
  }

  /** Mostly for a moment, now and then longer than the lease. */
  async #hold(holding: Holding): Promise<void> {
    const x = this.#chance.next();
    await this.sleep(x < 0.02 ? this.#around.scenario.ttlMs * 1.2 : 4 * x ** 3);
    if (!holding.lease.held) holding.endedAt ??= this.#around.now();
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
    this.#around.log?.(this.#process.name, what);
  }
}

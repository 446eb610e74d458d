// One caller: uses a locker as part of an application would, one act after another, drawn by
// chance, and reports its leases to the lease checker. In the calm after the storm every request
// must succeed.
import { LockError } from "#lock/protocol/ballot.js";
import type { Lease } from "#lock/protocol/locker.js";
import { validityMs } from "#lock/quorum.js";
import type { Chance, ClientProcess } from "../engine.js";
import type { Host } from "./host.js";
import type { Holding } from "./judges.js";
import { holdsLong } from "./scenario.js";
import type { Stage } from "./stage.js";

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
  [600, (caller) => caller.waitForTurn(1)],
  [150, (caller) => caller.waitForTurn(2)],
  [100, (caller) => caller.waitForTurn(3)],
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
  readonly #stage: Stage;
  readonly #chance: Chance;
  #last: { readonly resource: string; readonly token: number } | undefined;

  constructor(host: Host, stage: Stage, chance: Chance) {
    this.#host = host;
    this.#process = host.process;
    this.#stage = stage;
    this.#chance = chance;
  }

  async run(): Promise<void> {
    while (this.#stage.phase !== "calm") {
      await this.#act(this.#stage.phase === "storm" ? this.#draw() : acts[0]?.[1]);
      await this.sleep(this.#stage.phase === "recovery" ? this.#chance.between(100, 400) : 6 * this.#chance.next() ** 3);
    }
    for (let i = 0; i < CALM_ACTS; i++) await this.#act((caller) => caller.acquireStrictly());
    this.#doing("is done");
    this.isDone = true;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#process.setTimer(ms, resolve));
  }

  async acquireOne(): Promise<void> {
    const { scenario } = this.#stage;
    const resource = this.#resource();
    const waitMs = this.#chance.next() < 0.2 ? Number.POSITIVE_INFINITY : Math.floor(this.#chance.between(0, 3 * scenario.ttlMs));
    const holding = await this.#acquire([resource], {
      waitMs,
      ttlMs: this.#ttlMs(),
      renew: this.#chance.next() < 0.2,
    });
    await this.#hold(holding);
    if (this.#chance.next() < 0.1) await this.#extend(holding, Math.max(this.#ttlMs(), scenario.ttlMs >> 1));
    await this.#release(holding);
  }

  async waitForTurn(most: number): Promise<void> {
    const wanted = new Set(Array.from({ length: most }, () => this.#resource()));
    const holding = await this.#acquire([...wanted], { waitMs: Number.POSITIVE_INFINITY });
    await this.#hold(holding);
    await this.#release(holding);
  }

  async acquireSeveral(): Promise<void> {
    const { scenario } = this.#stage;
    const wanted = new Set([this.#resource(), this.#resource(), this.#resource()]);
    const holding = await this.#acquire([...wanted], { waitMs: scenario.ttlMs });
    await this.#hold(holding);
    await this.#release(holding);
  }

  async acquireStrictly(): Promise<void> {
    const holding = await this.#acquire([this.#resource()], { waitMs: 60_000 });
    await this.sleep(2 * this.#chance.next());
    await this.#release(holding);
  }

  async tryOne(): Promise<void> {
    const resource = this.#resource();
    this.#doing(`tries ${resource}`);
    const calledAt = this.#stage.timeline.now;
    const outcome = await this.#host.locker.tryAcquire(resource);
    this.#stage.oracle.judgeAttempt(this.#process, resource, outcome, this.#stage.phase === "calm" ? "healthy" : "any");
    if (!outcome.ok) return;
    const holding = this.#given(outcome.lease, { calledAt, ttlMs: this.#stage.scenario.ttlMs });
    await this.#hold(holding);
    await this.#release(holding);
  }

  async useOne(): Promise<void> {
    const { scenario } = this.#stage;
    const resource = this.#resource();
    this.#doing(`wants to use ${resource}`);
    const calledAt = this.#stage.timeline.now;
    await this.#host.locker.using(resource, { waitMs: scenario.ttlMs }, async (lease) => {
      const holding = this.#given(lease, { calledAt, ttlMs: scenario.ttlMs });
      await Promise.race([this.sleep(this.#chance.next() ** 8 * 3 * scenario.ttlMs), this.#untilEnd(holding)]);
      holding.endedAt ??= this.#stage.timeline.now;
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
    await this.#untilEnd(holding);
    await holding.lease.release();
  }

  async giveUpWaiting(): Promise<void> {
    const controller = new AbortController();
    const timer = this.#process.setTimer(this.#chance.next() * 40, () => controller.abort());
    const holding = await this.#acquire([this.#resource()], { signal: controller.signal });
    this.#process.clearTimer(timer);
    await this.#hold(holding);
    await this.#release(holding);
  }

  async forceOne(): Promise<void> {
    const resource = this.#resource();
    this.#doing(`removes the holder of ${resource}`);
    const { fence } = await this.#host.locker.fleet.forceRelease(resource, { reason: "simulated operator" });
    this.#stage.checker.fenced(resource, fence);
    this.#stage.log?.(this.#process.name, `has fenced ${resource} at ${fence}`);
  }

  async askWhetherIssued(): Promise<void> {
    const last = this.#last;
    if (last === undefined) return;
    this.#doing(`asks whether ${last.token} was issued`);
    if (await this.#host.locker.fleet.issued(last.resource, last.token)) return;
    this.#stage.checker.break(
      "issued",
      `${last.token} of ${last.resource} was given to ${this.#process.name}, and is said not to have been`,
    );
  }

  #draw(): Act {
    const { wants } = this.#stage.scenario;
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
    const { checker, phase, log } = this.#stage;
    const isAnswer = error instanceof LockError && error.code !== "FLEET_MISMATCH";
    log?.(this.#process.name, isAnswer ? `is refused: ${error.message}` : `fails: ${String(error)}`);
    if (!isAnswer) checker.break("rejection", `${this.#process.name}: ${error instanceof Error ? error.stack : String(error)}`);
    else if (phase === "calm" && this.doing.startsWith("strictly"))
      checker.break("forgotten", `${this.#process.name} was refused on a fleet that is well: ${error.message}`);
  }

  async #acquire(resources: readonly string[], options: Parameters<Host["locker"]["acquire"]>[1] & object): Promise<Holding> {
    this.#doing(`${this.#stage.phase === "calm" ? "strictly " : ""}wants ${resources.join(" and ")}`);
    const calledAt = this.#stage.timeline.now;
    // Before it has met the nodes it has no place among those that wait.
    const hasMet = this.#host.fleet.state().admitted.length === this.#stage.scenario.nodes;
    const isOver = hasMet ? this.#stage.turns?.waits(this, this.#process, resources) : undefined;
    let lease: Lease;
    try {
      lease = await this.#host.locker.acquire(resources, options);
    } finally {
      isOver?.();
    }
    return this.#given(lease, { calledAt, ttlMs: options.ttlMs ?? this.#stage.scenario.ttlMs });
  }

  /** A locker has just given it. */
  #given(lease: Lease, { calledAt, ttlMs }: { readonly calledAt: number; readonly ttlMs: number }): Holding {
    const { timeline, checker, oracle, turns, rules, log } = this.#stage;
    const client = this.#process;
    const lastsMs = validityMs(ttlMs, this.#host.policy.driftFactor);
    const leftMs = lease.remainingMs();
    const asks = rules.countsFrom === "last reply" ? "itself" : "the lease";
    const holding: Holding = {
      client,
      lease,
      resources: lease.resources,
      token: lease.token,
      // It began when the lease's time began to count; a wall clock set ahead makes it look earlier.
      beganAt: Math.max(calledAt, client.trueMoment(leftMs - lastsMs)),
      grantedAt: timeline.now,
      validUntilAt: client.trueMoment(asks === "itself" ? lastsMs : leftMs),
      endedAt: undefined,
      asks,
    };
    log?.(client.name, `has ${lease.resources.join(" and ")} with token ${lease.token} for ${leftMs.toFixed(1)} ms`);
    checker.given(holding);
    // With two lists a locker has a name of its own for a node that it found in the roster.
    if (rules.lists !== "two") oracle.judgeLease(holding);
    turns?.given(holding, this, calledAt);
    this.#last = { resource: lease.resource, token: lease.token };
    this.#doing(`holds ${lease.resources.join(" and ")}`);
    return holding;
  }

  async #extend(holding: Holding, ttlMs: number): Promise<void> {
    const { client, lease } = holding;
    const extending = lease.extend(ttlMs);
    holding.validUntilAt = Math.min(holding.validUntilAt, client.trueMoment(lease.remainingMs()));
    const { remainingMs } = await extending;
    holding.validUntilAt = client.trueMoment(remainingMs);
  }

  async #release({ client, lease, token }: Holding): Promise<void> {
    const { checker, timeline, log } = this.#stage;
    for (const holding of checker.holdings(lease.resource)) if (holding.lease === lease) holding.endedAt ??= timeline.now;
    log?.(client.name, `gives ${lease.resources.join(" and ")} back (token ${token})`);
    await lease.release();
  }

  /** Until the lease says that it is over. */
  async #untilEnd(holding: Holding): Promise<void> {
    const { signal } = holding.lease;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    if (holding.endedAt === undefined) this.#stage.checker.learnedOfEnd(holding);
  }

  /** Mostly for a moment, now and then longer than the lease. */
  async #hold(holding: Holding): Promise<void> {
    const x = this.#chance.next();
    await this.sleep(x < 0.02 && holdsLong(this.#stage.scenario) ? this.#stage.scenario.ttlMs * 1.2 : 4 * x ** 3);
    if (!holding.lease.held) holding.endedAt ??= this.#stage.timeline.now;
  }

  #resource(): string {
    return `r${this.#chance.below(this.#stage.scenario.resources)}`;
  }

  #ttlMs(): number {
    const { ttlMs, awayMs } = this.#stage.scenario;
    // A lease that is over before its second round is back cannot be won by who is that far away.
    const shortestMs = Math.max(0.3 * ttlMs, 6 * awayMs);
    return this.#chance.next() < 0.7 ? ttlMs : Math.floor(this.#chance.between(shortestMs, ttlMs));
  }

  #doing(what: string): void {
    this.doing = what;
    this.#stage.log?.(this.#process.name, what);
  }
}

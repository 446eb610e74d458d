// A run under planned faults, from its first server to the judged history.
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisNode, scratchFolder } from "@palisade/testkit";
import { judge } from "../checkers/judge.js";
import { Ambush, judgeAmbush } from "../faults/ambush.js";
import { FaultLog } from "../faults/fault-log.js";
import { inject } from "../faults/injector.js";
import { MemberChanges } from "../faults/members.js";
import { NodeFaults } from "../faults/redis-nodes.js";
import { type Plan, schedule } from "../faults/schedule.js";
import { Closers, type Course, type Ran, run, type Signals } from "../harness/run.js";
import type { Workers } from "../harness/workers.js";
import { emptyHistory, type History } from "../history/history.js";
import type { CounterSample, Violation } from "../history/records.js";
import { ledger } from "../report/ledger.js";
import type { Outcome } from "../report/outcome.js";
import { collectJournals } from "../servers/collect.js";
import type { Environment } from "../servers/environment.js";
import { lockKeys, readCounters } from "../servers/node-state.js";
import { chanceOf } from "../traffic/chance.js";
import { noTally, type Tally } from "../traffic/messages.js";

export interface FaultProfile {
  readonly seed: string;
  readonly plan: Plan;
  readonly ttlMs: number;
  readonly maxTtlMs: number;
  /**
   * After the last fault, all nodes are readmitted and all workers end their last operation within
   * this time, or the system is stuck.
   */
  readonly recoveryMs: number;
  /** How many faults may last at once, stopped clients not counted. */
  readonly limit: number;
  /** Between two traps, at most; undefined in a control, which has none. */
  readonly ambushRestMs: number | undefined;
  readonly killKeepsMemory: boolean;
  /** With how many of the nodes the fleet is founded, if its members change meanwhile. */
  readonly founders?: number;
  /** Whose counters are watched on the nodes. */
  readonly watched?: string;
  start(closers: Closers, folder: string): Promise<Environment>;
  /** Faults of the profile's own, beside the planned ones, until all are made or the signal. */
  besides?(environment: Environment, log: FaultLog, signals: Signals): Promise<void>;
  /** Faults of which the report says, one by one, what became of the writes meanwhile. */
  readonly accounted?: readonly string[];
  readmitted(node: RedisNode, giveUp: AbortSignal): Promise<boolean>;
  /** How long faults are injected; a sentence if the run has come to a standstill. */
  traffic(environment: Environment, done: Promise<unknown>): Promise<string | undefined>;
  /** What the servers have stored. */
  collect(environment: Environment): Promise<Partial<History>>;
}

export interface Progress {
  readonly elapsedMs: number;
  readonly phase: string;
  readonly tally: Tally;
  readonly faults: number;
  /** Faults that are not undone yet. */
  readonly lasting: readonly string[];
}

const PROGRESS_EVERY_MS = 500;
const COUNTERS_EVERY_MS = 120;

export async function runUnderFaults(profile: FaultProfile, onProgress: (progress: Progress) => void): Promise<Outcome> {
  await using faultRun = new FaultRun(profile);
  const startedAt = performance.now();
  const reporter = setInterval(() => onProgress(faultRun.progress(performance.now() - startedAt)), PROGRESS_EVERY_MS);
  try {
    const ran = await run(faultRun);
    await sleep(profile.maxTtlMs + 100);
    return await faultRun.judged(ran);
  } finally {
    clearInterval(reporter);
  }
}

/** What the run of one profile has open, and what it leaves for the judgement. */
class FaultRun implements Course<Environment>, AsyncDisposable {
  readonly #profile: FaultProfile;
  readonly #closers = new Closers();
  readonly #folder = scratchFolder("faults");
  readonly #log = new FaultLog();
  readonly #counters: CounterSample[] = [];
  #phase = "";
  #workers: Workers | undefined;
  #nodes: NodeFaults | undefined;
  #ambush: Ambush | undefined;
  #standstill: string | undefined;

  constructor(profile: FaultProfile) {
    this.#profile = profile;
  }

  get recoveryMs(): number {
    return this.#profile.recoveryMs;
  }

  onPhase(phase: string): void {
    this.#phase = phase;
  }

  progress(elapsedMs: number): Progress {
    const tally = this.#workers?.tally ?? noTally;
    return { elapsedMs, phase: this.#phase, tally, faults: this.#log.injected.length, lasting: this.#log.lasting() };
  }

  async start(): Promise<Environment> {
    const environment = await this.#profile.start(this.#closers, this.#folder);
    this.#workers = environment.workers;
    return environment;
  }

  async traffic(environment: Environment, done: Promise<unknown>): Promise<void> {
    this.#standstill = await this.#profile.traffic(environment, done);
  }

  /** All at once: the planned faults, the traps, changes of members, and the profile's own. */
  async inject(environment: Environment, signals: Signals): Promise<void> {
    const { seed, plan, ttlMs, maxTtlMs, limit, ambushRestMs, killKeepsMemory, besides } = this.#profile;
    const { fleet } = environment;
    const { giveUp, over } = signals;
    const log = this.#log;
    const readmitted = (node: RedisNode): Promise<boolean> => this.#profile.readmitted(node, giveUp);
    const nodes = new NodeFaults({ fleet, log, readmitted, killKeepsMemory });
    this.#nodes = nodes;
    if (ambushRestMs !== undefined) {
      const chance = chanceOf(seed, "ambush");
      this.#ambush = this.#closers.use(await Ambush.prepare({ fleet, log, nodes, chance, maxTtlMs, restMs: ambushRestMs }));
    }
    const planned = inject({ environment, plan: schedule(seed, plan), log, nodes, ambush: this.#ambush, ttlMs, limit, giveUp }, over);
    const changes = this.#changeMembers(environment, nodes, signals);
    const watching = this.#watchCounters(environment, nodes, over);
    await Promise.all([planned, watching, changes, besides?.(environment, log, signals)]);
    await this.#readCounters(environment, nodes);
  }

  async #changeMembers({ fleet }: Environment, faults: NodeFaults, { over, giveUp }: Signals): Promise<void> {
    const { seed, maxTtlMs, founders } = this.#profile;
    if (founders === undefined) return;
    const [way, chance] = [await fleet.anotherWay(), chanceOf(seed, "members")];
    await new MemberChanges({ way, nodes: fleet.nodes, founders, faults, log: this.#log, chance, maxTtlMs }).goOn(over, giveUp);
  }

  async #watchCounters(environment: Environment, nodes: NodeFaults, over: AbortSignal): Promise<void> {
    const isWatched = this.#profile.watched !== undefined;
    for (; isWatched && !over.aborted; await sleep(COUNTERS_EVERY_MS)) await this.#readCounters(environment, nodes);
  }

  async #readCounters({ fleet }: Environment, nodes: NodeFaults): Promise<void> {
    const { watched } = this.#profile;
    if (watched !== undefined) this.#counters.push(...(await readCounters(fleet, watched, nodes)));
  }

  async judged(ran: Ran<Environment>): Promise<Outcome> {
    const { environment, span, isRecovered } = ran;
    const { recoveryMs, collect, accounted = [] } = this.#profile;
    const { fleet, gateways, workers } = environment;
    const { clockJumps, injected, leftOut, stored: storedAt } = this.#log;
    await this.#ambush?.[Symbol.asyncDispose]();
    const stored = await collect(environment);
    const leftBehind = isRecovered ? await lockKeys(fleet.nodes) : [];
    const history: History = {
      ...emptyHistory,
      ...collectJournals(this.#folder),
      ...stored,
      counters: this.#counters,
      clockJumps,
      leftBehind,
    };
    const ends = [
      ...(this.#nodes?.notReadmitted ?? []).map((node) => `${node} was not readmitted within ${recoveryMs} ms`),
      ...(this.#standstill === undefined ? [] : [this.#standstill]),
      ...(isRecovered ? [] : [`not every client ended its last operation within ${recoveryMs} ms after the last fault`]),
    ].map((what): Violation => ({ promise: "end", what }));
    const ambushed = this.#ambush?.leases ?? [];
    return {
      servers: environment.servers,
      span,
      history,
      ambushed,
      violations: [...judge(history), ...judgeAmbush(ambushed, clockJumps), ...ends],
      injected,
      leftOut,
      pauses: workers.pauses,
      traps: this.#ambush?.counts ?? {},
      ledger: ledger({ history, span, injected, stored: storedAt }, accounted),
      remarks: gateways.flatMap(({ slowStarts }) => slowStarts),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closers[Symbol.asyncDispose]();
  }
}

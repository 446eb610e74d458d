// One world: nodes, processes, callers and faults of one scenario, played in three phases: a storm
// with faults; recovery, until every locker believes every node again; and the calm, in which every
// request must succeed soon.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channelNames, type RenewalEvent } from "#lock/protocol/events.js";
import { floorsNeeded } from "#lock/redis/admission/plan.js";
import { epochIn, paddedRunId } from "#lock/redis/record.js";
import { Chance } from "../engine/chance.js";
import { Timeline, Trace } from "../engine/timeline.js";
import { Machine } from "../network/path.js";
import { SimServer } from "../server/sim-server.js";
import { Ambushes } from "./ambush/ambushes.js";
import { Caller } from "./caller.js";
import { Faults } from "./faults.js";
import { Host, NAMESPACE } from "./host.js";
import { LeaseChecker, type Violation } from "./lease-checker.js";
import { leftoverKeys } from "./leftover-keys.js";
import { allRules, type Rules, withoutLeastToken } from "./rules.js";
import type { AmbushKind, FaultKind, Scenario } from "./scenario.js";
import { ServerOracle } from "./server-oracle.js";
import type { Surroundings } from "./surroundings.js";
import { callLine } from "./trace-line.js";
import { TurnChecker } from "./turn-checker.js";

export interface WorldSettings {
  readonly rules?: Rules;
  readonly tracing?: "traced" | "not traced";
}

export interface WorldResult {
  readonly violations: readonly Violation[];
  readonly acquisitions: number;
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly ambushes: Readonly<Record<AmbushKind, number>>;
  readonly secondDeliveries: number;
  readonly events: number;
  readonly simulatedMs: number;
  readonly trace: Trace | undefined;
}

/** Connections return within two seconds; a blocked admission is tried again about every second. */
const RECOVERS_WITHIN_MS = 9_000;
const CALM_WITHIN_MS = 12_000;
const LOOK_EVERY_MS = 50;
const SETTLE_MS = 250;
const BORN_AT_MS = 1_700_000_000_000;

export class World {
  readonly timeline = new Timeline();
  readonly checker: LeaseChecker;
  readonly #turns: TurnChecker | undefined;
  readonly #scenario: Scenario;
  readonly #rules: Rules;
  readonly #trace: Trace | undefined;
  readonly #log: ((actor: string, what: string) => void) | undefined;
  readonly #chance: Chance;
  readonly #machines: readonly Machine[];
  readonly #hosts: readonly Host[];
  readonly #faults: Faults;
  readonly #ambushes: Ambushes;
  readonly #oracle: ServerOracle;
  readonly #callers = new Map<Host, readonly Caller[]>();
  readonly #forgetful: Set<string>;
  #phase: "storm" | "recovery" | "calm" = "storm";
  #processes = 0;

  constructor(scenario: Scenario, { rules = allRules, tracing = "not traced" }: WorldSettings = {}) {
    const { timeline } = this;
    const now = (): number => timeline.now;
    this.#scenario = scenario;
    this.#rules = rules;
    this.#trace = tracing === "traced" ? new Trace(now) : undefined;
    this.#log = this.#trace === undefined ? undefined : (actor, what) => this.#trace?.log(actor, what);
    this.#chance = new Chance(scenario.chance);
    this.checker = new LeaseChecker(now, scenario.clocks === "even" ? "with exclusion" : "without exclusion");
    this.#turns = scenario.wants === "turns" ? this.#turnChecker() : undefined;
    this.#oracle = new ServerOracle({
      onRemoved: (resource) => this.checker.forced(resource),
      onAdmitted: (server) => this.#admitted(server),
    });
    const servers = rules.lists === "two" ? scenario.nodes + 1 : scenario.nodes;
    this.#machines = Array.from({ length: servers }, (_, i) => this.#machine(`n${i + 1}`));
    const members = this.#machines.slice(0, scenario.nodes);
    this.#forgetful = new Set(members.map(({ server }) => server.name));
    this.#hosts = Array.from({ length: scenario.clients }, (_, i) => this.#host(`p${i + 1}`));
    for (const host of this.#hosts) this.#populate(host);
    this.#faults = new Faults({
      timeline,
      scenario,
      machines: members,
      hosts: this.#hosts,
      forgetful: this.#forgetful,
      log: this.#log,
      onNewLife: ({ server }, before) => rules.onNewLife?.(server, before),
      onBegin: (host) => this.#populate(host),
      onChange: () => this.#turns?.changed(),
    });
    this.#ambushes = new Ambushes({
      timeline,
      scenario,
      machines: this.#machines,
      faults: this.#faults,
      log: this.#log,
    });
  }

  async play(): Promise<WorldResult> {
    const { timeline, checker } = this;
    const renewed = (event: unknown): void => this.#renewed(event as RenewalEvent);
    const rejected = (error: unknown): void => checker.break("rejection", `unhandled: ${error instanceof Error ? error.stack : error}`);
    subscribe(channelNames.renewal, renewed);
    process.on("unhandledRejection", rejected);
    try {
      timeline.at(this.#scenario.stormMs, () => this.#recover());
      await timeline.play(() => checker.violations.length > 0 || this.#isQuiet);
    } finally {
      unsubscribe(channelNames.renewal, renewed);
      process.off("unhandledRejection", rejected);
    }
    return {
      violations: checker.violations,
      acquisitions: checker.granted,
      faults: this.#faults.counts,
      ambushes: this.#ambushes.counts,
      secondDeliveries: this.#secondDeliveries(),
      events: timeline.happened,
      simulatedMs: timeline.now,
      trace: this.#trace,
    };
  }

  #isQuiet = false;

  #recover(): void {
    this.#log?.("world", "the storm is over");
    this.#faults.end();
    this.#phase = "recovery";
    const { ttlMs } = this.#scenario;
    const byMs = this.timeline.now + RECOVERS_WITHIN_MS + 2 * ttlMs + this.#setBackMs();
    const look = (): void => {
      const ill = this.#ill();
      if (ill === undefined) this.#calm();
      else if (this.timeline.now > byMs) this.checker.break("forgotten", `the fleet does not recover: ${ill}`);
      else this.timeline.after(LOOK_EVERY_MS, look);
    };
    this.timeline.after(LOOK_EVERY_MS, look);
  }

  /** The first host whose locker does not believe all nodes yet. */
  #ill(): string | undefined {
    for (const { fleet, name } of this.#hosts) {
      const { admitted, quarantined, unreachable } = fleet.state();
      if (admitted.length < this.#scenario.nodes) return `for ${name} ${JSON.stringify({ admitted, quarantined, unreachable })}`;
    }
    return undefined;
  }

  #calm(): void {
    this.#log?.("world", "all is well");
    this.timeline.after(SETTLE_MS, () => {
      this.#phase = "calm";
    });
    const byMs = this.timeline.now + CALM_WITHIN_MS + 10 * this.#scenario.ttlMs + this.#setBackMs();
    const look = (): void => {
      const waiting = [...this.#callers].flatMap(([{ name }, callers]) =>
        callers.flatMap((caller) => (caller.isDone ? [] : [`${name} ${caller.doing}`])),
      );
      if (waiting.length === 0) this.timeline.after(SETTLE_MS, () => this.#end());
      else if (this.timeline.now > byMs) this.checker.break("forgotten", `still waiting: ${waiting.join("; ")}`);
      else this.timeline.after(LOOK_EVERY_MS, look);
    };
    look();
  }

  #end(): void {
    const given = {
      hosts: this.#hosts,
      clocks: this.#scenario.clocks,
      faults: this.#faults.counts,
      wants: this.#scenario.wants,
    };
    for (const what of leftoverKeys(this.#machines, given)) this.checker.break("left behind", what);
    this.#isQuiet = true;
  }

  /** How far clocks of nodes may have been set back: their keys live that much longer. */
  #setBackMs(): number {
    return this.#scenario.faults.filter(({ kind }) => kind === "jump node").length * 2_000;
  }

  #admitted(name: string): void {
    const { nodes, appendfsync } = this.#scenario;
    this.#forgetful.delete(name);
    const others = this.#machines.filter(({ server }) => server.name !== name && isBelieved(server)).length;
    if (appendfsync !== "always" && others < floorsNeeded(nodes)) this.checker.refounded();
  }

  #turnChecker(): TurnChecker {
    const { callers, clients, resources, ttlMs } = this.#scenario;
    return new TurnChecker({
      now: () => this.timeline.now,
      driftMs: ttlMs / 20,
      callers: callers * clients,
      looks: resources === 1 ? "counted" : "not counted",
      break: (promise, what) => this.checker.break(promise, what),
    });
  }

  #secondDeliveries(): number {
    return this.#hosts.flatMap(({ paths }) => paths).reduce((sum, path) => sum + path.secondDeliveries, 0);
  }

  #machine(name: string): Machine {
    const chance = this.#chance.of(name);
    const spread = this.#scenario.clocks === "even" ? 0.002 : 0.2;
    const log = this.#log;
    const { answer } = this.#rules;
    const edit = this.#scenario.chance % 2 === 0 ? this.#rules.edit : withoutLeastToken(this.#rules.edit);
    const server = new SimServer({
      name,
      now: () => this.timeline.now,
      clock: {
        rate: 1 + spread * (2 * chance.next() - 1),
        aheadMs: BORN_AT_MS + Math.floor(chance.between(-900, 900)),
      },
      appendfsync: this.#scenario.appendfsync,
      ...(edit === undefined ? {} : { edit }),
      ...(answer === undefined ? {} : { answer }),
      onExecuted: (executed) => {
        this.#oracle.executed(executed);
        const line = log === undefined ? undefined : callLine(executed);
        if (line !== undefined) log?.(name, line);
        this.#ambushes.executed(executed);
      },
    });
    return new Machine(server);
  }

  #host(name: string): Host {
    return new Host({
      name,
      timeline: this.timeline,
      scenario: this.#scenario,
      machines: this.#machines,
      chance: this.#chance.of(name),
      rules: this.#rules,
      log: this.#log,
    });
  }

  #populate(host: Host): void {
    const around: Surroundings = {
      now: () => this.timeline.now,
      scenario: this.#scenario,
      checker: this.checker,
      rules: this.#rules,
      oracle: this.#oracle,
      turns: this.#turns,
      phase: () => this.#phase,
      log: this.#log,
    };
    const callers = Array.from({ length: this.#scenario.callers }, (_, i) => {
      const name = `caller ${++this.#processes} ${i}`;
      return new Caller(host, around, this.#chance.of(name));
    });
    this.#callers.set(host, callers);
    host.process.soon(() => {
      for (const caller of callers) void caller.run();
    });
  }

  /** The channel carries events of all worlds; a lease is known by its list of resources. */
  #renewed({ resources, outcome, remainingMs }: RenewalEvent): void {
    if (outcome !== "renewed") return;
    for (const resource of resources) {
      for (const holding of this.checker.holdings(resource)) {
        if (holding.lease.resources === resources && holding.endedAt === undefined)
          holding.validUntilAt = holding.client.trueMoment(remainingMs);
      }
    }
  }
}

/** The lock believes its memory in its present life. */
function isBelieved(server: SimServer): boolean {
  const record = server.memory.hash(`{${NAMESPACE}}:node`, server.wallMs());
  const admitted = record?.get("admitted") ?? "";
  return epochIn(admitted) !== "" && admitted.startsWith(`+${paddedRunId(server.runId).slice(0, -1)}`);
}

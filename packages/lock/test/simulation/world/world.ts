// One world: nodes, processes, callers, faults, all from one scenario, played until every caller is done. Three phases: a storm with faults, recovery until every locker
// believes every node again, and the calm, in which every question must succeed soon.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channelNames, type RenewalEvent } from "#lock/protocol/events.js";
import { floorsNeeded } from "#lock/redis/admission/plan.js";
import { incarnationIn, paddedRunId } from "#lock/redis/admission-record.js";
import { Chance } from "../engine/chance.js";
import { Timeline } from "../engine/timeline.js";
import { Trace } from "../engine/trace.js";
import { Machine } from "../network/machine.js";
import { SimServer } from "../server/sim-server.js";
import { Ambushes } from "./ambush/ambushes.js";
import { Caller, type Surroundings } from "./caller.js";
import { Faults } from "./faults.js";
import { keysLeftBehind } from "./left-behind.js";
import { Register, type Violation } from "./register.js";
import { allRules, type Rules } from "./rules.js";
import type { AmbushKind, FaultKind, Scenario } from "./scenario.js";
import { ServerOracle } from "./server-oracle.js";
import { NAMESPACE, Station } from "./station.js";
import { toldCall } from "./told.js";

export interface WorldSettings {
  readonly rules?: Rules;
  readonly tracing?: "traced" | "not traced";
}

export interface Outcome {
  readonly violations: readonly Violation[];
  readonly acquisitions: number;
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly ambushes: Readonly<Record<AmbushKind, number>>;
  readonly secondDeliveries: number;
  readonly events: number;
  readonly simulatedMs: number;
  readonly trace: Trace | undefined;
}

/** Connections come back within two seconds, blocked admissions are tried again every second or so. */
const RECOVERS_WITHIN_MS = 9_000;
const CALM_WITHIN_MS = 12_000;
const LOOK_EVERY_MS = 50;
const SETTLE_MS = 250;
const BORN_AT_MS = 1_700_000_000_000;

export class World {
  readonly timeline = new Timeline();
  readonly register: Register;
  readonly #scenario: Scenario;
  readonly #rules: Rules;
  readonly #trace: Trace | undefined;
  readonly #tell: ((actor: string, what: string) => void) | undefined;
  readonly #chance: Chance;
  readonly #machines: readonly Machine[];
  readonly #stations: readonly Station[];
  readonly #faults: Faults;
  readonly #ambushes: Ambushes;
  readonly #oracle: ServerOracle;
  readonly #callers = new Map<Station, readonly Caller[]>();
  readonly #forgetful: Set<string>;
  /** Owners whose leases somebody else was to give back. */
  readonly #handedOver = new Set<string>();
  #phase: "storm" | "recovery" | "calm" = "storm";
  #lives = 0;

  constructor(scenario: Scenario, { rules = allRules, tracing = "not traced" }: WorldSettings = {}) {
    const { timeline } = this;
    const now = (): number => timeline.now;
    this.#scenario = scenario;
    this.#rules = rules;
    this.#trace = tracing === "traced" ? new Trace(now) : undefined;
    this.#tell = this.#trace === undefined ? undefined : (actor, what) => this.#trace?.tell(actor, what);
    this.#chance = new Chance(scenario.chance);
    this.register = new Register(now, scenario.clocks === "even" ? "with exclusion" : "without exclusion");
    this.#oracle = new ServerOracle({
      onRemoved: (resource) => this.register.forced(resource),
      onAdmitted: (server) => this.#admitted(server),
    });
    this.#machines = Array.from({ length: scenario.nodes }, (_, i) => this.#machine(`n${i + 1}`));
    this.#forgetful = new Set(this.#machines.map(({ server }) => server.name));
    this.#stations = Array.from({ length: scenario.clients }, (_, i) => this.#station(`p${i + 1}`));
    for (const station of this.#stations) this.#populate(station);
    this.#faults = new Faults({
      timeline,
      scenario,
      machines: this.#machines,
      stations: this.#stations,
      forgetful: this.#forgetful,
      tell: this.#tell,
      onNewLife: ({ server }, before) => rules.onNewLife?.(server, before),
      onBegin: (station) => this.#populate(station),
    });
    this.#ambushes = new Ambushes({ timeline, scenario, machines: this.#machines, faults: this.#faults, tell: this.#tell });
  }

  async play(): Promise<Outcome> {
    const { timeline, register } = this;
    const renewed = (event: unknown): void => this.#renewed(event as RenewalEvent);
    const rejected = (error: unknown): void =>
      register.break("rejection", `nobody heard of ${error instanceof Error ? error.stack : error}`);
    subscribe(channelNames.renewal, renewed);
    process.on("unhandledRejection", rejected);
    try {
      timeline.at(this.#scenario.stormMs, () => this.#recover());
      await timeline.play(() => register.violations.length > 0 || this.#isQuiet);
    } finally {
      unsubscribe(channelNames.renewal, renewed);
      process.off("unhandledRejection", rejected);
    }
    return {
      violations: register.violations,
      acquisitions: register.granted,
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
    this.#tell?.("world", "the storm is over");
    this.#faults.end();
    this.#phase = "recovery";
    const { ttlMs } = this.#scenario;
    const byMs = this.timeline.now + RECOVERS_WITHIN_MS + 2 * ttlMs + this.#setBackMs();
    const look = (): void => {
      const ill = this.#ill();
      if (ill === undefined) this.#calm();
      else if (this.timeline.now > byMs) this.register.break("forgotten", `the fleet does not recover: ${ill}`);
      else this.timeline.after(LOOK_EVERY_MS, look);
    };
    this.timeline.after(LOOK_EVERY_MS, look);
  }

  /** Who does not believe in all nodes yet. */
  #ill(): string | undefined {
    for (const { fleet, name } of this.#stations) {
      const { admitted, quarantined, unreachable } = fleet.state();
      if (admitted.length < this.#scenario.nodes) return `for ${name} ${JSON.stringify({ admitted, quarantined, unreachable })}`;
    }
    return undefined;
  }

  #calm(): void {
    this.#tell?.("world", "all is well");
    this.timeline.after(SETTLE_MS, () => {
      this.#phase = "calm";
    });
    const byMs = this.timeline.now + CALM_WITHIN_MS + 10 * this.#scenario.ttlMs + this.#setBackMs();
    const look = (): void => {
      const waiting = [...this.#callers].flatMap(([{ name }, callers]) =>
        callers.flatMap((caller) => (caller.isDone ? [] : [`${name} ${caller.doing}`])),
      );
      if (waiting.length === 0) this.timeline.after(SETTLE_MS, () => this.#end());
      else if (this.timeline.now > byMs) this.register.break("forgotten", `still waiting: ${waiting.join("; ")}`);
      else this.timeline.after(LOOK_EVERY_MS, look);
    };
    look();
  }

  #end(): void {
    const given = { stations: this.#stations, clocks: this.#scenario.clocks, faults: this.#faults.counts, excused: this.#handedOver };
    for (const what of keysLeftBehind(this.#machines, given)) this.register.break("left behind", what);
    this.#isQuiet = true;
  }

  /** By how much the clocks of nodes may have been set back: their keys live so much longer. */
  #setBackMs(): number {
    return this.#scenario.faults.filter(({ kind }) => kind === "jump node").length * 2_000;
  }

  #admitted(name: string): void {
    const { nodes, appendfsync } = this.#scenario;
    this.#forgetful.delete(name);
    const others = this.#machines.filter(({ server }) => server.name !== name && isBelieved(server)).length;
    if (appendfsync !== "always" && others < floorsNeeded(nodes)) this.register.refounded();
  }

  #secondDeliveries(): number {
    return this.#stations.flatMap(({ paths }) => paths).reduce((sum, path) => sum + path.secondDeliveries, 0);
  }

  #machine(name: string): Machine {
    const chance = this.#chance.of(name);
    const spread = this.#scenario.clocks === "even" ? 0.002 : 0.2;
    const tell = this.#tell;
    const { edit, answer } = this.#rules;
    const server = new SimServer({
      name,
      now: () => this.timeline.now,
      clock: { rate: 1 + spread * (2 * chance.next() - 1), aheadMs: BORN_AT_MS + Math.floor(chance.between(-900, 900)) },
      appendfsync: this.#scenario.appendfsync,
      ...(edit === undefined ? {} : { edit }),
      ...(answer === undefined ? {} : { answer }),
      onExecuted: (executed) => {
        this.#oracle.executed(executed);
        const told = tell === undefined ? undefined : toldCall(executed);
        if (told !== undefined) tell?.(name, told);
        this.#ambushes.executed(executed);
      },
    });
    return new Machine(server);
  }

  #station(name: string): Station {
    return new Station({
      name,
      timeline: this.timeline,
      scenario: this.#scenario,
      machines: this.#machines,
      chance: this.#chance.of(name),
      rules: this.#rules,
      tell: this.#tell,
    });
  }

  #populate(station: Station): void {
    const around: Surroundings = {
      now: () => this.timeline.now,
      scenario: this.#scenario,
      register: this.register,
      rules: this.#rules,
      oracle: this.#oracle,
      phase: () => this.#phase,
      other: (than) => this.#otherThan(than),
      onHandedOver: (text) => this.#handedOver.add(String(JSON.parse(text).owner)),
      tell: this.#tell,
    };
    const callers = Array.from({ length: this.#scenario.callers }, (_, i) => {
      const name = `caller ${++this.#lives} ${i}`;
      return new Caller(station, around, this.#chance.of(name));
    });
    this.#callers.set(station, callers);
    station.process.soon(() => {
      for (const caller of callers) void caller.run();
    });
  }

  #otherThan(station: Station): Station | undefined {
    const others = this.#stations.filter((other) => other !== station && other.process.state === "running");
    return others.length === 0 ? undefined : this.#chance.any(others);
  }

  /** Everybody in this process is heard of, also a world that a test has given up waiting for: a lease is known by its own list of resources. */
  #renewed({ resources, outcome, remainingMs }: RenewalEvent): void {
    if (outcome !== "renewed") return;
    for (const resource of resources) {
      for (const claim of this.register.claims(resource)) {
        if (claim.lease.resources === resources && claim.endedAt === undefined) claim.validUntilAt = claim.client.trueMoment(remainingMs);
      }
    }
  }
}

/** Its memory, in its present life. */
function isBelieved(server: SimServer): boolean {
  const record = server.memory.hash(`{${NAMESPACE}}:node`, server.wallMs());
  const admitted = record?.get("admitted") ?? "";
  return incarnationIn(admitted) !== "" && admitted.startsWith(paddedRunId(server.runId));
}

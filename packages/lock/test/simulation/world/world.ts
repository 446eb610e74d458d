// One world: nodes, processes, callers and faults of one scenario, played in three phases: a storm
// with faults; recovery, until every locker believes every node again; and the calm, in which every
// request must succeed soon.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channelNames, type RenewalEvent } from "#lock/protocol/events.js";
import type { Trace } from "../engine.js";
import { Ambushes } from "./ambushes.js";
import { Caller } from "./caller.js";
import { Faults } from "./faults.js";
import { Host } from "./host.js";
import type { Violation } from "./judges.js";
import type { AmbushKind, FaultKind, Scenario } from "./scenario.js";
import { Stage, type WorldSettings } from "./stage.js";

export interface WorldResult {
  readonly violations: readonly Violation[];
  readonly acquisitions: number;
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly ambushes: Readonly<Record<AmbushKind, number>>;
  readonly secondDeliveries: number;
  readonly trace: Trace | undefined;
}

/** Connections return within two seconds; a blocked admission is tried again about every second. */
const RECOVERS_WITHIN_MS = 9_000;
const CALM_WITHIN_MS = 12_000;
const LOOK_EVERY_MS = 50;
const SETTLE_MS = 250;
/** After these faults a released key may exist again, or outlive its lease. */
const revives: readonly FaultKind[] = ["second time", "lose tail", "jump node"];

export class World {
  readonly #stage: Stage;
  readonly #hosts: readonly Host[];
  readonly #faults: Faults;
  readonly #ambushes: Ambushes;
  readonly #callers = new Map<Host, readonly Caller[]>();
  #processes = 0;
  #isQuiet = false;

  constructor(scenario: Scenario, settings: WorldSettings = {}) {
    const stage = new Stage(scenario, settings);
    this.#stage = stage;
    this.#hosts = Array.from({ length: scenario.clients }, (_, i) => new Host(stage, `p${i + 1}`));
    for (const host of this.#hosts) this.#populate(host);
    this.#faults = new Faults(stage, this.#hosts, (host) => this.#populate(host));
    this.#ambushes = new Ambushes(stage, this.#faults);
  }

  async play(): Promise<WorldResult> {
    const { timeline, checker, scenario, trace } = this.#stage;
    const renewed = (event: unknown): void => this.#renewed(event as RenewalEvent);
    const rejected = (error: unknown): void => checker.break("rejection", `unhandled: ${error instanceof Error ? error.stack : error}`);
    subscribe(channelNames.renewal, renewed);
    process.on("unhandledRejection", rejected);
    try {
      timeline.at(scenario.stormMs, () => this.#recover());
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
      trace,
    };
  }

  #recover(): void {
    this.#stage.log?.("world", "the storm is over");
    this.#faults.end();
    this.#stage.phase = "recovery";
    const { ttlMs } = this.#stage.scenario;
    const byMs = this.#stage.timeline.now + RECOVERS_WITHIN_MS + 2 * ttlMs + this.#setBackMs();
    const look = (): void => {
      const ill = this.#ill();
      if (ill === undefined) this.#calm();
      else if (this.#stage.timeline.now > byMs) this.#stage.checker.break("forgotten", `the fleet does not recover: ${ill}`);
      else this.#stage.timeline.after(LOOK_EVERY_MS, look);
    };
    this.#stage.timeline.after(LOOK_EVERY_MS, look);
  }

  /** The first host whose locker does not believe all nodes yet. */
  #ill(): string | undefined {
    for (const { fleet, name } of this.#hosts) {
      const { admitted, quarantined, unreachable } = fleet.state();
      if (admitted.length < this.#stage.scenario.nodes) return `for ${name} ${JSON.stringify({ admitted, quarantined, unreachable })}`;
    }
    return undefined;
  }

  #calm(): void {
    this.#stage.log?.("world", "all is well");
    this.#stage.timeline.after(SETTLE_MS, () => {
      this.#stage.phase = "calm";
    });
    const byMs = this.#stage.timeline.now + CALM_WITHIN_MS + 10 * this.#stage.scenario.ttlMs + this.#setBackMs();
    const look = (): void => {
      const waiting = [...this.#callers].flatMap(([{ name }, callers]) =>
        callers.flatMap((caller) => (caller.isDone ? [] : [`${name} ${caller.doing}`])),
      );
      if (waiting.length === 0) this.#stage.timeline.after(SETTLE_MS, () => this.#end());
      else if (this.#stage.timeline.now > byMs) this.#stage.checker.break("forgotten", `still waiting: ${waiting.join("; ")}`);
      else this.#stage.timeline.after(LOOK_EVERY_MS, look);
    };
    look();
  }

  #end(): void {
    this.#stage.turns?.judgeShares();
    for (const what of this.#leftoverKeys()) this.#stage.checker.break("left behind", what);
    this.#isQuiet = true;
  }

  /**
   * Keys that must not be on the nodes once every caller has released its leases: locks of live processes, and any key
   * without an end except the node's record. Where nothing failed but processes, also tickets of live ones.
   */
  #leftoverKeys(): readonly string[] {
    const { clocks, wants } = this.#stage.scenario;
    const alive = new Set(this.#hosts.map(({ name }) => name));
    const mayRevive = clocks === "wild" || revives.some((kind) => this.#faults.counts[kind] > 0);
    return this.#stage.machines.flatMap(({ server }) =>
      [...server.memory.alive(server.wallMs())].flatMap(({ key, value, leftMs }) => {
        if (key.endsWith(":node")) return [];
        if (leftMs === -1) return [`${key} on ${server.name} has no end`];
        if (wants === "turns" && typeof value !== "string" && key.includes(":queue:")) {
          const left = [...value.keys()].filter((ticket) => alive.has(processIn(ticket)));
          return left.map((ticket) => `ticket ${ticket} is in ${key} on ${server.name}, and its process is alive and done`);
        }
        if (!key.includes(":lock:") || mayRevive) return [];
        if (!alive.has(processIn(String(value)))) return [];
        return [`${key} on ${server.name} lives ${leftMs} ms more for ${String(value)}, whose process is alive and done`];
      }),
    );
  }

  /** How far clocks of nodes may have been set back: their keys live that much longer. */
  #setBackMs(): number {
    return this.#stage.scenario.faults.filter(({ kind }) => kind === "jump node").length * 2_000;
  }

  #secondDeliveries(): number {
    return this.#hosts.flatMap(({ paths }) => paths).reduce((sum, path) => sum + path.secondDeliveries, 0);
  }

  /** A process runs on this host: its callers begin. */
  #populate(host: Host): void {
    const callers = Array.from({ length: this.#stage.scenario.callers }, (_, i) => {
      const name = `caller ${++this.#processes} ${i}`;
      return new Caller(host, this.#stage, this.#stage.chance.of(name));
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
      for (const holding of this.#stage.checker.holdings(resource)) {
        if (holding.lease.resources === resources && holding.endedAt === undefined)
          holding.validUntilAt = holding.client.trueMoment(remainingMs);
      }
    }
  }
}

/** Secrets begin with the name of the process. */
function processIn(secret: string): string {
  return secret.split("-", 1)[0] ?? "";
}

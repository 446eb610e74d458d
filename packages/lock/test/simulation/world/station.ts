// One place at which a process of clients runs: opens a locker there over simulated connections, and another one when the process has died. Decides nothing about what is
// asked of the locker.
import { QuorumLocker } from "#lock/locker.js";
import { type Policy, readPolicy } from "#lock/options/policy.js";
import type { Fleet } from "#lock/protocol/fleet.js";
import { openNodes } from "#lock/redis/open-nodes.js";
import type { Chance } from "../engine/chance.js";
import { ClientProcess } from "../engine/client-process.js";
import type { Timeline } from "../engine/timeline.js";
import type { Machine } from "../network/machine.js";
import { Path } from "../network/path.js";
import { SimLink } from "../network/sim-link.js";
import type { Rules } from "./rules.js";
import type { Scenario } from "./scenario.js";
import { toldEvent } from "./told.js";

export interface StationSettings {
  readonly name: string;
  readonly timeline: Timeline;
  readonly scenario: Scenario;
  readonly machines: readonly Machine[];
  readonly chance: Chance;
  readonly rules: Rules;
  readonly tell: ((actor: string, what: string) => void) | undefined;
}

export const NAMESPACE = "sim";
const CONNECT_TIMEOUT_MS = 300;
const BORN_AT_MS = 1_700_000_000_000;

export class Station {
  process: ClientProcess;
  locker: QuorumLocker;
  fleet: Fleet;
  paths: readonly Path[] = [];
  policy: Policy;
  readonly #settings: StationSettings;
  readonly #rate: number;
  #links: SimLink[] = [];
  #lives = 0;

  constructor(settings: StationSettings) {
    this.#settings = settings;
    const { chance, scenario } = settings;
    const spread = scenario.clocks === "even" ? 0.002 : 0.2;
    this.#rate = 1 + spread * (2 * chance.next() - 1);
    ({ process: this.process, locker: this.locker, fleet: this.fleet, policy: this.policy } = this.#open());
  }

  get name(): string {
    return this.process.name;
  }

  /** The process dies with everything it has; its machine ends the connections. */
  die(): void {
    this.process.die();
    for (const link of this.#links) link.abandon();
  }

  /** The next process begins. */
  begin(): void {
    Object.assign(this, this.#open());
  }

  #open(): Pick<Station, "process" | "locker" | "fleet" | "policy"> {
    const { name, timeline, scenario, machines, chance, rules, tell } = this.#settings;
    const life = `${name}${"abcdefghijklmnopqrstuvwxyz"[this.#lives++ % 26]}`;
    const process = new ClientProcess(life, timeline, {
      rate: this.#rate,
      wallAheadMs: BORN_AT_MS + chance.between(-500, 500),
      chance: chance.of(life),
    });
    const speed = { leastMs: scenario.leastMs, jitterMs: scenario.jitterMs };
    this.paths = machines.map(
      (machine) => new Path({ timeline, client: process, machine, speed, chance: chance.of(`${life} ${machine.server.name}`), tell }),
    );
    this.#links = [];
    const { policy, sources } = policyOf(scenario, rules, life);
    const fleet = openNodes({
      ...policy,
      nodes: sources,
      clock: process,
      openLink: (source, settings) => {
        const path = this.paths[sources.indexOf(source as string)];
        if (path === undefined) throw new Error("a link to nowhere");
        const link = new SimLink(path, settings);
        this.#links.push(link);
        return link;
      },
      onEvent: (event) => {
        if (tell !== undefined) tell(life, toldEvent(event));
      },
    });
    return { process, policy, fleet, locker: new QuorumLocker(fleet, policy, process) };
  }
}

function policyOf(scenario: Scenario, rules: Rules, label: string): { readonly policy: Policy; readonly sources: readonly string[] } {
  const { ttlMs, nodeTimeoutMs } = scenario;
  const sources = Array.from({ length: scenario.nodes }, (_, i) => `redis://n${i + 1}:6379`);
  const asked = {
    nodes: sources,
    namespace: NAMESPACE,
    ttlMs,
    maxTtlMs: ttlMs,
    // In some worlds counters run out all the time, and the floor takes over; in others they stay.
    retentionMs: (scenario.chance % 2 === 0 ? 2 : 30) * ttlMs,
    nodeTimeoutMs: Math.min(nodeTimeoutMs, ttlMs),
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    label,
  };
  return { policy: rules.policy(readPolicy(asked)), sources };
}

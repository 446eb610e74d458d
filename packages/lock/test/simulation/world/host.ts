// A host of client processes: opens a locker over simulated connections for each.
import { QuorumLocker } from "#lock/locker.js";
import { type Policy, readPolicy } from "#lock/options/policy.js";
import type { NodeEvent } from "#lock/protocol/events.js";
import type { OpenFleet } from "#lock/protocol/fleet.js";
import { openFleet } from "#lock/redis/open-fleet.js";
import { type Chance, ClientProcess } from "../engine.js";
import { Path } from "../network.js";
import { SimLink } from "../sim-link.js";
import type { Configured, Rules } from "./rules.js";
import type { Scenario } from "./scenario.js";
import { BORN_AT_MS, NAMESPACE, type Stage } from "./stage.js";

const CONNECT_TIMEOUT_MS = 300;

export class Host {
  process: ClientProcess;
  locker: QuorumLocker;
  fleet: OpenFleet;
  paths: readonly Path[] = [];
  policy: Policy;
  readonly #stage: Stage;
  readonly #name: string;
  readonly #chance: Chance;
  readonly #rate: number;
  #links: SimLink[] = [];
  #processes = 0;

  constructor(stage: Stage, name: string) {
    this.#stage = stage;
    this.#name = name;
    this.#chance = stage.chance.of(name);
    this.#rate = stage.clockRate(this.#chance);
    ({ process: this.process, locker: this.locker, fleet: this.fleet, policy: this.policy } = this.#open());
  }

  get name(): string {
    return this.process.name;
  }

  /** The process dies; the operating system resets its connections. */
  die(): void {
    this.process.die();
    for (const link of this.#links) link.abandon();
  }

  /** The next process begins. */
  begin(): void {
    Object.assign(this, this.#open());
  }

  #open(): Pick<Host, "process" | "locker" | "fleet" | "policy"> {
    const { timeline, scenario, machines, rules, log } = this.#stage;
    const chance = this.#chance;
    const processName = `${this.#name}${"abcdefghijklmnopqrstuvwxyz"[this.#processes++ % 26]}`;
    const process = new ClientProcess(processName, timeline, {
      rate: this.#rate,
      wallAheadMs: BORN_AT_MS + chance.between(-500, 500),
      chance: chance.of(processName),
    });
    const isAway = this.#name === `p${scenario.clients}`;
    const speed = { leastMs: scenario.leastMs + (isAway ? scenario.awayMs : 0), jitterMs: scenario.jitterMs };
    this.paths = machines.map(
      (machine) =>
        new Path({
          timeline,
          client: process,
          machine,
          speed,
          chance: chance.of(`${processName} ${machine.server.name}`),
          log,
        }),
    );
    this.#links = [];
    const { policy, sources } = policyOf(scenario, rules, processName);
    if (rules.lists === "two" && this.#processes > 1) sources[sources.length - 1] = urlOf(scenario.nodes);
    const fleet = openFleet({
      ...policy,
      nodes: sources,
      clock: process,
      openLink: (source, settings) => {
        const path = this.paths[machines.findIndex((_, i) => urlOf(i) === source)];
        if (path === undefined) throw new Error("a link to nowhere");
        const link = new SimLink(path, settings);
        this.#links.push(link);
        return rules.hears === undefined ? link : hearing(link, rules.hears, { nodes: sources, ttlMs: scenario.ttlMs });
      },
      onEvent: (event) => {
        if (log !== undefined) log(processName, eventLine(event));
      },
    });
    return { process, policy, fleet, locker: new QuorumLocker(fleet, policy, process) };
  }
}

/** The link, with every answer to a script changed. */
function hearing(link: SimLink, hears: NonNullable<Rules["hears"]>, configured: Configured): SimLink {
  const [evaluate, send] = [link.eval.bind(link), link.send.bind(link)];
  const told = (reply: unknown): unknown => hears(reply, configured);
  return Object.assign(link, {
    eval: (...words: Parameters<SimLink["eval"]>) => evaluate(...words).then(told),
    send: (...words: Parameters<SimLink["send"]>) => send(...words).then(told),
  });
}

const urlOf = (machine: number): string => `redis://n${machine + 1}:6379`;

function policyOf(scenario: Scenario, rules: Rules, label: string): { readonly policy: Policy; readonly sources: string[] } {
  const { ttlMs, nodeTimeoutMs } = scenario;
  const sources = Array.from({ length: scenario.nodes }, (_, i) => urlOf(i));
  const asked = {
    nodes: sources,
    namespace: NAMESPACE,
    ttlMs,
    maxTtlMs: ttlMs,
    // In half of the worlds counters expire and the floor takes over; in the others they stay.
    retentionMs: (scenario.chance % 2 === 0 ? 2 : 30) * ttlMs,
    nodeTimeoutMs: Math.min(nodeTimeoutMs, ttlMs),
    // Several round trips.
    connectTimeoutMs: CONNECT_TIMEOUT_MS + 8 * scenario.awayMs,
    label,
  };
  return { policy: rules.policy(readPolicy(asked)), sources };
}

/** A line of the trace: an event that a locker reports of its nodes. */
function eventLine({ kind, ...rest }: NodeEvent): string {
  const details = Object.entries(rest).filter(([name]) => name !== "address");
  return [kind.replaceAll("_", " "), ...details.map(([name, value]) => `${name === "node" ? "" : `${name} `}${value}`)].join(" ");
}

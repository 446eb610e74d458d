// What everybody in a world sees: its time, chance and rules, the machines with their servers, the
// judges, and the trace.
import { floorsNeeded } from "#lock/redis/admission/plan.js";
import { epochIn, paddedRunId } from "#lock/redis/record.js";
import { Chance, Timeline, Trace } from "../engine.js";
import { Machine } from "../network.js";
import { type Executed, SimServer } from "../sim-server.js";
import { LeaseChecker, ServerOracle, TurnChecker } from "./judges.js";
import { allRules, type Rules } from "./rules.js";
import type { Scenario } from "./scenario.js";

export interface WorldSettings {
  readonly rules?: Rules;
  readonly tracing?: "traced" | "not traced";
}

export const NAMESPACE = "sim";
export const BORN_AT_MS = 1_700_000_000_000;

export class Stage {
  readonly scenario: Scenario;
  readonly rules: Rules;
  readonly timeline = new Timeline();
  readonly chance: Chance;
  readonly trace: Trace | undefined;
  readonly log: ((actor: string, what: string) => void) | undefined;
  readonly checker: LeaseChecker;
  /** Where all wait for their turns. */
  readonly turns: TurnChecker | undefined;
  readonly oracle: ServerOracle;
  readonly machines: readonly Machine[];
  /** The machines that are members from the beginning. */
  readonly members: readonly Machine[];
  /** Nodes whose memory is lost, or was never admitted. */
  readonly forgetful: Set<string>;
  phase: "storm" | "recovery" | "calm" = "storm";
  /** Called after every script, before its answer is sent. */
  onExecuted: (executed: Executed) => void = () => {};

  constructor(scenario: Scenario, { rules = allRules, tracing = "not traced" }: WorldSettings) {
    const now = (): number => this.timeline.now;
    this.scenario = scenario;
    this.rules = rules;
    this.chance = new Chance(scenario.chance);
    this.trace = tracing === "traced" ? new Trace(now) : undefined;
    this.log = this.trace === undefined ? undefined : (actor, what) => this.trace?.log(actor, what);
    this.checker = new LeaseChecker(now, scenario.clocks === "even" ? "with exclusion" : "without exclusion");
    this.turns = scenario.wants === "turns" ? new TurnChecker(this.timeline, scenario, this.checker) : undefined;
    this.oracle = new ServerOracle(scenario, this.checker, (server) => this.#admitted(server));
    const servers = rules.lists === "two" ? scenario.nodes + 1 : scenario.nodes;
    this.machines = Array.from({ length: servers }, (_, i) => this.#machine(`n${i + 1}`));
    this.members = this.machines.slice(0, scenario.nodes);
    this.forgetful = new Set(this.members.map(({ server }) => server.name));
  }

  /** How fast a clock goes, against true time. */
  clockRate(chance: Chance): number {
    const spread = this.scenario.clocks === "even" ? 0.002 : 0.2;
    return 1 + spread * (2 * chance.next() - 1);
  }

  #machine(name: string): Machine {
    const chance = this.chance.of(name);
    const { log } = this;
    const { answer, edit } = this.rules;
    const server = new SimServer({
      name,
      now: () => this.timeline.now,
      clock: {
        rate: this.clockRate(chance),
        aheadMs: BORN_AT_MS + Math.floor(chance.between(-900, 900)),
      },
      appendfsync: this.scenario.appendfsync,
      ...(edit === undefined ? {} : { edit }),
      ...(answer === undefined ? {} : { answer }),
      onExecuted: (executed) => {
        this.oracle.executed(executed);
        const line = log === undefined ? undefined : callLine(executed);
        if (line !== undefined) log?.(name, line);
        this.onExecuted(executed);
      },
    });
    return new Machine(server);
  }

  #admitted(name: string): void {
    const { nodes, appendfsync } = this.scenario;
    this.forgetful.delete(name);
    const others = this.machines.filter(({ server }) => server.name !== name && isBelieved(server)).length;
    if (appendfsync !== "always" && others < floorsNeeded(nodes)) this.checker.refounded();
  }
}

/** The lock believes its memory in its present life. */
function isBelieved(server: SimServer): boolean {
  const record = server.memory.hash(`{${NAMESPACE}}:node`, server.wallMs());
  const admitted = record?.get("admitted") ?? "";
  return epochIn(admitted) !== "" && admitted.startsWith(`+${paddedRunId(server.runId).slice(0, -1)}`);
}

/** The field `admitted` of a record: run_id, counter floor, epoch. */
const ADMITTED = /n\dlife(\d+)x+\d{15}([\w-]+)/g;
const RUN_ID = /n\dlife(\d+)x+/g;

/** A line of the trace: a script call with its resources and its answer. undefined: it only loads the script. */
function callLine({ name, keys, args, reply }: Executed): string | undefined {
  const resources = keys.filter((key) => key.includes(":lock:")).map((key) => key.slice(key.indexOf(":lock:") + ":lock:".length));
  if (args.length === 0 && name !== "status") return undefined;
  const said = args.filter((arg) => !arg.match(ADMITTED)).join(" ");
  const answer = JSON.stringify(reply).replace(ADMITTED, "epoch $2 of life $1").replace(RUN_ID, "life $1");
  return `${[name, ...resources].join(" ")} (${said.replace(RUN_ID, "life $1").replaceAll("\n", "+")}) → ${answer.replaceAll("\\n", "+")}`;
}

// A run under planned faults, from its first server to the judged history, and the command around
// it: what it prints and writes, and its exit code. A control is expected to be found wanting.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisNode, scratchFolder } from "@palisade/testkit";
import { chanceOf } from "../chance.js";
import { judge } from "../checkers/judge.js";
import { type Command, progress, progressLines, type ReportFiles } from "../command.js";
import { inject } from "../faults/injector.js";
import { MemberChanges } from "../faults/members.js";
import { lockKeys, NodeFaults, readCounters, readmitted } from "../faults/redis-nodes.js";
import { FaultLog, type Plan, schedule } from "../faults/schedule.js";
import { breakStore } from "../faults/stores.js";
import { type CounterSample, collectJournals, emptyHistory, type Violation } from "../history.js";
import { type Outcome, picture, textReport } from "../report/fault-report.js";
import { whole } from "../report/svg.js";
import type { Environment } from "../servers/system.js";
import { noTally } from "../traffic/messages.js";
import { Closers, run, type Signals } from "./run.js";
import type { Workers } from "./workers.js";

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
  /** Whether a killed node has everything on disk. */
  readonly killKeepsMemory: boolean;
  /** A node of the lock's control votes as soon as it is up. */
  readonly votesAtOnce?: boolean;
  /** With how many of the nodes the fleet is founded, if its members change meanwhile. */
  readonly founders?: number;
  /** Whose counters are watched on the nodes. */
  readonly watched?: string;
  /** How often each fault of the store comes, where it has faults of its own: the run is over with the last. */
  readonly rounds?: number;
  start(closers: Closers, folder: string): Promise<Environment>;
  /** How long faults are injected; a sentence if the run has come to a standstill. */
  traffic(environment: Environment, done: Promise<unknown>): Promise<string | undefined>;
}

const PROGRESS_EVERY_MS = 500;
const COUNTERS_EVERY_MS = 120;

async function runUnderFaults(profile: FaultProfile, show: (elapsedMs: number, line: string) => void): Promise<Outcome> {
  const { seed, plan, ttlMs, maxTtlMs, recoveryMs, limit, killKeepsMemory, founders, watched } = profile;
  await using closers = new Closers();
  const folder = scratchFolder("faults");
  const log = new FaultLog();
  const counters: CounterSample[] = [];
  const ends: string[] = [];
  let phase = "";
  let workers: Workers | undefined;
  let nodes: NodeFaults | undefined;
  const storeFaultsMade = new AbortController();

  /** All at once: the planned faults, changes of members, and faults of the store. */
  const injectAll = async (environment: Environment, { over, giveUp }: Signals): Promise<void> => {
    const { fleet, gateways, storeFaults } = environment;
    const votesAgain = (node: RedisNode): Promise<boolean> => (profile.votesAtOnce ? sleep(maxTtlMs, true) : readmitted(node, giveUp));
    const faults = new NodeFaults({ fleet, log, readmitted: votesAgain, killKeepsMemory });
    nodes = faults;
    const changeMembers = async (): Promise<void> => {
      if (founders === undefined) return;
      const [way, chance] = [await fleet.anotherWay(), chanceOf(seed, "members")];
      await new MemberChanges({ way, nodes: fleet.nodes, founders, faults, log, chance, maxTtlMs }).goOn(over, giveUp);
    };
    const count = async (): Promise<void> => {
      if (watched !== undefined) counters.push(...(await readCounters(fleet, watched, faults)));
    };
    const watchCounters = async (): Promise<void> => {
      for (; watched !== undefined && !over.aborted; await sleep(COUNTERS_EVERY_MS)) await count();
    };
    const breakItsStore = async (): Promise<void> => {
      if (storeFaults !== undefined) await breakStore(storeFaults, { gateways, log, seed, rounds: profile.rounds ?? 1 }, over);
      storeFaultsMade.abort();
    };
    const settings = { environment, plan: schedule(seed, plan), log, nodes: faults, ttlMs, limit, giveUp };
    await Promise.all([inject(settings, over), watchCounters(), changeMembers(), breakItsStore()]);
    await count();
  };

  const startedAt = performance.now();
  const reporter = setInterval(() => {
    const { done, refused, unknown } = workers?.tally ?? noTally;
    const what = phase === "undoing faults" ? `${phase} (${log.lasting().join(", ")})` : phase;
    const answers = `${whole(done)} done, ${whole(refused)} refused, ${whole(unknown)} unknown`;
    const elapsedMs = performance.now() - startedAt;
    show(elapsedMs, `${(elapsedMs / 1_000).toFixed(0)} s, ${what}: ${answers}, ${whole(log.injected.length)} faults`);
  }, PROGRESS_EVERY_MS);
  closers.use({ [Symbol.asyncDispose]: async () => clearInterval(reporter) });
  const { environment, span, isRecovered } = await run<Environment>({
    recoveryMs,
    onPhase: (next) => {
      phase = next;
    },
    start: async () => {
      const environment = await profile.start(closers, folder);
      workers = environment.workers;
      return environment;
    },
    inject: injectAll,
    traffic: async (environment, done) => {
      if (environment.storeFaults !== undefined) return void (await Promise.race([once(storeFaultsMade.signal, "abort"), done]));
      const standstill = await profile.traffic(environment, done);
      if (standstill !== undefined) ends.push(standstill);
    },
  });
  await sleep(maxTtlMs + 100);
  if (!isRecovered) ends.push(`not every client ended its last operation within ${recoveryMs} ms after the last fault`);
  ends.push(...(nodes?.notReadmitted ?? []).map((node) => `${node} was not readmitted within ${recoveryMs} ms`));
  const { clockJumps, injected, leftOut } = log;
  const history = {
    ...emptyHistory,
    ...collectJournals(folder),
    ...(await environment.collect?.()),
    counters,
    clockJumps,
    leftBehind: isRecovered ? await lockKeys(environment.fleet.nodes) : [],
  };
  const stuck = ends.map((what): Violation => ({ promise: "end", what }));
  const violations = [...judge(history), ...stuck];
  const { servers, workers: all } = environment;
  return { servers, span, history, violations, injected, leftOut, pauses: all.pauses };
}

export interface FaultAsked extends ReportFiles {
  readonly seed: string;
  readonly isControl: boolean;
}

export interface FaultCommand<Asked extends FaultAsked> extends Omit<Command<Asked>, "perform"> {
  profile(asked: Asked): FaultProfile;
  /** The options that draw the same faults again, without the seed. */
  repeat(asked: Asked): string;
  /** What a control is expected to do, and whether it did. */
  readonly expected: string;
  isFoundWanting(violations: readonly Violation[]): boolean;
}

const LINE_EVERY_MS = 10_000;

export function faultCommand<Asked extends FaultAsked>(described: FaultCommand<Asked>): Command<Asked> {
  const perform = async (asked: Asked): Promise<number> => {
    const { seed, isControl, json, svg } = asked;
    const repeat = `npm run faults -- ${described.repeat(asked)} --seed ${seed}${isControl ? " --control" : ""}`;
    console.log(`seed ${seed}; to repeat: ${repeat}`);
    const outcome = await runUnderFaults(described.profile(asked), progressLines(LINE_EVERY_MS));
    progress("");
    console.log(textReport(outcome));
    if (json !== undefined) writeFileSync(json, JSON.stringify({ asked, ...outcome }));
    if (svg !== undefined) writeFileSync(svg, picture(outcome, `Palisade fault run ${seed}`, repeat));
    if (isControl) {
      const isFound = described.isFoundWanting(outcome.violations);
      console.log(isFound ? "so it should be: this is the control" : `the control was expected to ${described.expected}, and did not`);
      return isFound ? 0 : 1;
    }
    if (outcome.violations.length > 0) console.log(`to repeat: ${repeat}`);
    return outcome.violations.length > 0 ? 1 : 0;
  };
  return { ...described, perform };
}

// A run under planned faults, from its first server to the judged history, and the command around it: what it prints and
// writes, and its exit code. A control is expected to be found wanting.
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Closers, MissingPrograms, scratchFolder } from "@palisade/testkit";
import { chanceOf } from "../chance.js";
import { judge } from "../checkers/judge.js";
import { fileOf, progressLines, runCommand, seedOf, type Values, whole } from "../command.js";
import { breakStore, inject } from "../faults/injector.js";
import { MemberChanges } from "../faults/members.js";
import { lockKeys, NodeFaults, readCounters, readmitted } from "../faults/redis-nodes.js";
import { FaultLog, type Plan, schedule } from "../faults/schedule.js";
import { type CounterSample, collectJournals, emptyHistory, type Violation } from "../history.js";
import { type Outcome, textReport } from "../report.js";
import type { Environment } from "../servers/system.js";
import { run, type Signals } from "./workers.js";

export interface FaultProfile {
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

export interface Asked {
  readonly seed: string;
  readonly isControl: boolean;
}

export interface FaultCommand {
  readonly usage: string;
  /** Throws an error for people if what is asked for makes no sense. */
  profile(asked: Asked, values: Values): FaultProfile;
  /** What a control is expected to do, and whether it did. */
  readonly expected: string;
  isFoundWanting(violations: readonly Violation[]): boolean;
}

const LINE_EVERY_MS = 10_000;
const PROGRESS_EVERY_MS = 500;
const COUNTERS_EVERY_MS = 120;
/** Exit code: nothing was run, because programs are missing. */
const MISSING = 3;

export function runFaults(command: FaultCommand, args: readonly string[]): Promise<number> {
  return runCommand(command.usage, args, (values) => {
    const asked = { seed: seedOf(values), isControl: values.control === true };
    const profile = command.profile(asked, values);
    const json = fileOf(values, "json");
    const repeat = `npm run faults -- ${repeated(process.argv.slice(2))}--seed ${asked.seed}`;
    return async () => {
      console.log(`seed ${asked.seed}; to repeat: ${repeat}`);
      try {
        const outcome = await runUnderFaults(profile, asked.seed);
        console.log(textReport(outcome));
        if (json !== undefined) writeFileSync(json, JSON.stringify({ repeat, ...outcome }));
        const isBroken = outcome.violations.length > 0;
        if (isBroken && !asked.isControl) console.log(`to repeat: ${repeat}`);
        if (!asked.isControl) return isBroken ? 1 : 0;
        const isFound = command.isFoundWanting(outcome.violations);
        console.log(isFound ? "so it should be: this is the control" : `the control was expected to ${command.expected}, and did not`);
        return isFound ? 0 : 1;
      } catch (error) {
        if (!(error instanceof MissingPrograms)) throw error;
        console.error(error.message);
        return MISSING;
      }
    };
  });
}

/** What draws the same faults again, but for the seed. */
function repeated(args: readonly string[]): string {
  const others = args.filter((arg, i) => !/^--(seed|json)(=|$)/.test(arg) && !/^--(seed|json)$/.test(args[i - 1] ?? ""));
  return others.map((arg) => `${arg} `).join("");
}

async function runUnderFaults(profile: FaultProfile, seed: string): Promise<Outcome> {
  const { maxTtlMs, recoveryMs, founders, watched } = profile;
  await using closers = new Closers();
  const folder = scratchFolder("faults");
  const log = new FaultLog();
  const counters: CounterSample[] = [];
  const ends: string[] = [];
  let phase = "starting";
  const environment = await profile.start(closers, folder);
  const { fleet, gateways, storeFaults, workers } = environment;
  const votesAgain = profile.votesAtOnce === true ? (): Promise<boolean> => sleep(maxTtlMs, true) : readmitted;
  const nodes = new NodeFaults({ fleet, log, readmitted: votesAgain });

  const changeMembers = async ({ over, giveUp }: Signals): Promise<void> => {
    if (founders === undefined) return;
    const [way, chance] = [await fleet.anotherWay(), chanceOf(seed, "members")];
    await new MemberChanges({ way, nodes: fleet.nodes, founders, faults: nodes, log, chance, maxTtlMs }).goOn(over, giveUp);
  };
  const count = async (): Promise<void> => {
    if (watched !== undefined) counters.push(...(await readCounters(fleet, watched, nodes)));
  };
  const watchCounters = async ({ over }: Signals): Promise<void> => {
    for (; watched !== undefined && !over.aborted; await sleep(COUNTERS_EVERY_MS)) await count();
  };
  let storeFaultsMade: Promise<void> | undefined;

  const show = progressLines(LINE_EVERY_MS);
  const startedAt = performance.now();
  const reporter = setInterval(() => {
    const { done, refused, unknown } = workers.tally;
    const what = phase === "undoing faults" ? `${phase} (${log.lasting().join(", ")})` : phase;
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
    const answers = `${whole(done)} done, ${whole(refused)} refused, ${whole(unknown)} unknown`;
    show(`${seconds} s, ${what}: ${answers}, ${whole(log.injected.length)} faults`);
  }, PROGRESS_EVERY_MS);
  closers.use({ [Symbol.asyncDispose]: async () => clearInterval(reporter) });

  const { span, isRecovered } = await run(workers, {
    recoveryMs,
    onPhase: (next) => {
      phase = next;
    },
    inject: async (signals) => {
      const { over, giveUp } = signals;
      if (storeFaults !== undefined) storeFaultsMade = breakStore(storeFaults, { gateways, log, seed, rounds: profile.rounds ?? 1 }, over);
      const injecting = inject(
        { environment, plan: schedule(seed, profile.plan), log, nodes, ttlMs: profile.ttlMs, limit: profile.limit, giveUp },
        over,
      );
      await Promise.all([injecting, watchCounters(signals), changeMembers(signals), storeFaultsMade]);
      await count();
    },
    traffic: async (done) => {
      if (storeFaultsMade !== undefined) return void (await Promise.race([storeFaultsMade, done]));
      const standstill = await profile.traffic(environment, done);
      if (standstill !== undefined) ends.push(standstill);
    },
  });
  await sleep(maxTtlMs + 100);
  show("");
  if (!isRecovered) ends.push(`not every client ended its last operation within ${recoveryMs} ms after the last fault`);
  ends.push(...nodes.notReadmitted.map((node) => `${node} was not readmitted within ${recoveryMs} ms`));
  const history = {
    ...emptyHistory,
    ...collectJournals(folder),
    ...(await environment.collect?.()),
    counters,
    clockJumps: log.clockJumps,
    leftBehind: isRecovered ? await lockKeys(fleet.nodes) : [],
  };
  const stuck = ends.map((what): Violation => ({ promise: "end", what }));
  const violations = [...judge(history), ...stuck];
  return { servers: environment.servers, span, history, violations, injected: log.injected, leftOut: log.leftOut, pauses: workers.pauses };
}

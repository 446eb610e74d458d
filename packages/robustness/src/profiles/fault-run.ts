// A run under planned faults, from its first server to the judged history.
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisFleet, type RedisNode, scratchFolder } from "@palisade/testkit";
import { judge } from "../checkers/judge.js";
import { Ambush, judgeAmbush } from "../faults/ambush.js";
import { FaultLog } from "../faults/fault-log.js";
import { inject } from "../faults/injector.js";
import { MemberChanges } from "../faults/members.js";
import { NodeFaults } from "../faults/redis-nodes.js";
import { type Plan, schedule } from "../faults/schedule.js";
import { type Command, progressEnded, progressLines, type ReportFiles } from "../harness/command.js";
import { Closers, type Ran, run, type Signals } from "../harness/run.js";
import { emptyHistory, type History } from "../history/history.js";
import type { CounterSample, Violation } from "../history/records.js";
import { page } from "../report/drawing.js";
import { ledger } from "../report/ledger.js";
import type { Outcome } from "../report/outcome.js";
import { whole } from "../report/table.js";
import { figuresOf, textReport } from "../report/text.js";
import { timeline } from "../report/timeline.js";
import { collectJournals } from "../servers/collect.js";
import type { Environment } from "../servers/environment.js";
import { lockKeys, readCounters } from "../servers/node-state.js";
import { chanceOf } from "../traffic/chance.js";
import type { Tally } from "../traffic/messages.js";

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

/** What the faults leave for the judgement, beside their log. */
interface Injected {
  ambush?: Ambush;
  nodes?: NodeFaults;
  counters: CounterSample[];
  standstill?: string | undefined;
}

export async function runUnderFaults(profile: FaultProfile, onProgress: (progress: Progress) => void): Promise<Outcome> {
  await using closers = new Closers();
  const folder = scratchFolder("faults");
  const log = new FaultLog();
  const injected: Injected = { counters: [] };
  let phase = "";
  let tally: Tally = { done: 0, refused: 0, unknown: 0, overwrote: 0 };
  const startedAt = performance.now();
  const reporter = setInterval(() => {
    const elapsedMs = performance.now() - startedAt;
    onProgress({ elapsedMs, phase, tally, faults: log.injected.length, lasting: log.lasting() });
  }, PROGRESS_EVERY_MS);
  closers.use({ [Symbol.asyncDispose]: async () => clearInterval(reporter) });
  const ran = await run<Environment>({
    recoveryMs: profile.recoveryMs,
    onPhase: (next) => {
      phase = next;
    },
    start: async () => {
      const environment = await profile.start(closers, folder);
      tally = environment.workers.tally;
      return environment;
    },
    inject: (environment, signals) => injectAll(profile, { environment, log, injected, closers }, signals),
    traffic: async (environment, done) => {
      injected.standstill = await profile.traffic(environment, done);
    },
  });
  await sleep(profile.maxTtlMs + 100);
  return await judged(profile, ran, { folder, log, injected });
}

interface Injection {
  readonly environment: Environment;
  readonly log: FaultLog;
  readonly injected: Injected;
  readonly closers: Closers;
}

async function injectAll(profile: FaultProfile, { environment, log, injected, closers }: Injection, signals: Signals): Promise<void> {
  const { seed, plan, ttlMs, maxTtlMs, limit, ambushRestMs, killKeepsMemory, watched } = profile;
  const { fleet } = environment;
  const { giveUp, over } = signals;
  const readmitted = (node: RedisNode): Promise<boolean> => profile.readmitted(node, giveUp);
  const nodes = new NodeFaults({ fleet, log, readmitted, killKeepsMemory });
  injected.nodes = nodes;
  if (ambushRestMs !== undefined) {
    const chance = chanceOf(seed, "ambush");
    injected.ambush = closers.use(await Ambush.prepare({ fleet, log, nodes, chance, maxTtlMs, restMs: ambushRestMs }));
  }
  const { ambush } = injected;
  const faults = inject({ environment, plan: schedule(seed, plan), log, nodes, ambush, ttlMs, limit, giveUp }, over);
  const changes = await changesOf(profile, { fleet, log, faults: nodes });
  const read = async (): Promise<void> => {
    if (watched !== undefined) injected.counters.push(...(await readCounters(fleet, watched, nodes)));
  };
  const watch = async (): Promise<void> => {
    for (; watched !== undefined && !over.aborted; await sleep(COUNTERS_EVERY_MS)) await read();
  };
  await Promise.all([faults, watch(), changes?.goOn(over, giveUp), profile.besides?.(environment, log, signals)]);
  await read();
}

async function changesOf(
  { seed, maxTtlMs, founders }: FaultProfile,
  { fleet, log, faults }: { readonly fleet: RedisFleet; readonly log: FaultLog; readonly faults: NodeFaults },
): Promise<MemberChanges | undefined> {
  if (founders === undefined) return undefined;
  const way = await fleet.anotherWay();
  return new MemberChanges({ way, nodes: fleet.nodes, founders, faults, log, chance: chanceOf(seed, "members"), maxTtlMs });
}

interface Evidence {
  readonly folder: string;
  readonly log: FaultLog;
  readonly injected: Injected;
}

async function judged(profile: FaultProfile, ran: Ran<Environment>, { folder, log, injected }: Evidence): Promise<Outcome> {
  const { environment, span, isRecovered } = ran;
  const { recoveryMs } = profile;
  const { ambush, nodes, counters, standstill } = injected;
  const { fleet, gateways, workers } = environment;
  await ambush?.[Symbol.asyncDispose]();
  const stored = await profile.collect(environment);
  const leftBehind = isRecovered ? await lockKeys(fleet.nodes) : [];
  const { clockJumps } = log;
  const history: History = { ...emptyHistory, ...collectJournals(folder), ...stored, counters, clockJumps, leftBehind };
  const ends = [
    ...(nodes?.notReadmitted ?? []).map((node) => `${node} was not readmitted within ${recoveryMs} ms`),
    ...(standstill === undefined ? [] : [standstill]),
    ...(isRecovered ? [] : [`not every client ended its last operation within ${recoveryMs} ms after the last fault`]),
  ].map((what): Violation => ({ promise: "end", what }));
  const ambushed = ambush?.leases ?? [];
  return {
    servers: environment.servers,
    span,
    history,
    ambushed,
    violations: [...judge(history), ...judgeAmbush(ambushed, clockJumps), ...ends],
    injected: log.injected,
    leftOut: log.leftOut,
    pauses: workers.pauses,
    traps: ambush?.counts ?? {},
    ledger: ledger({ history, span, injected: log.injected, stored: log.stored }, profile.accounted ?? []),
    remarks: gateways.flatMap(({ slowStarts }) => slowStarts),
  };
}

// The command of a run under faults: what it prints and writes, and its exit code. A control is
// expected to be found wanting.
interface Described<Asked> extends Omit<Command<Asked>, "perform"> {
  profile(asked: Asked): FaultProfile;
  /** The command that draws the same faults again. */
  repeat(asked: Asked): string;
  /** Whether the control was. */
  isFoundWanting(violations: readonly Violation[]): boolean;
  /** What a control is expected to do. */
  readonly expected: string;
}

const LINE_EVERY_MS = 10_000;

export function faultCommand<Asked extends ReportFiles & { readonly isControl: boolean; readonly seed: string }>(
  described: Described<Asked>,
): Command<Asked> {
  const { profile, repeat, isFoundWanting, expected } = described;
  const perform = async (asked: Asked): Promise<number> => {
    console.log(`seed ${asked.seed}; to repeat: ${repeat(asked)}`);
    const show = progressLines(LINE_EVERY_MS);
    const outcome = await runUnderFaults(profile(asked), (state) => show(state.elapsedMs, progressLine(state)));
    progressEnded();
    console.log(textReport(outcome));
    writeReports(asked, outcome, repeat(asked));
    const isBroken = outcome.violations.length > 0;
    if (asked.isControl) {
      const isFound = isFoundWanting(outcome.violations);
      console.log(isFound ? "so it should be: this is the control" : `the control was expected to ${expected}, and did not`);
      return isFound ? 0 : 1;
    }
    if (isBroken) console.log(`to repeat: ${repeat(asked)}`);
    return isBroken ? 1 : 0;
  };
  return { ...described, perform };
}

function writeReports(asked: ReportFiles & { readonly seed: string }, outcome: Outcome, repeat: string): void {
  const { json, svg, html } = asked;
  if (json !== undefined) writeFileSync(json, JSON.stringify({ asked, figures: figuresOf(outcome), ...outcome }));
  if (svg === undefined && html === undefined) return;
  const picture = timeline(outcome, { title: `Palisade fault run ${asked.seed}`, repeat });
  if (svg !== undefined) writeFileSync(svg, picture);
  if (html !== undefined) writeFileSync(html, page(`Palisade fault run ${asked.seed}`, picture));
}

function progressLine({ elapsedMs, phase, tally, faults, lasting }: Progress): string {
  const what = phase === "undoing faults" ? `${phase} (${lasting.join(", ")})` : phase;
  const { done, refused, unknown } = tally;
  const seconds = (elapsedMs / 1_000).toFixed(0);
  return `${seconds} s, ${what}: ${whole(done)} done, ${whole(refused)} refused, ${whole(unknown)} unknown, ${whole(faults)} faults`;
}

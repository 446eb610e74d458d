// One run of the whole system from the first server to the judged history. It decides the order of things: clients work while faults happen, everything is healed, each
// client gets one more write stored, all leave, the longest ttl passes, then it is looked at what there is.
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisNode, scratchFolder } from "@palisade/testkit";
import { judge } from "../../checkers/judge.js";
import { AMBUSH, Ambush, judgeAmbush } from "../../faults/ambush.js";
import { FaultLog, type Struck } from "../../faults/fault-log.js";
import { believed, lockKeys } from "../../faults/readmission.js";
import { NodeStrikes } from "../../faults/redis-nodes.js";
import { chanceOf } from "../../harness/chance.js";
import { nowMs, type Span, type Violation } from "../../history/lease-record.js";
import type { Cast } from "./cast.js";
import { Ending } from "./ending.js";
import { gather } from "./gather.js";
import type { ResourceTenure, SystemHistory } from "./history.js";
import { Nemesis } from "./nemesis.js";
import { schedule } from "./schedule.js";
import { GATEWAYS, NODES, setUp } from "./set-up.js";
import type { Stage } from "./stage.js";
import { MAX_TTL_MS, type Mode } from "./words.js";

export interface RunOptions {
  readonly seed: string;
  readonly mode: Mode;
  readonly clients: number;
  /** How long faults are made. */
  readonly durationMs: number;
  readonly onProgress?: (state: Progress) => void;
}

export interface Progress {
  readonly elapsedMs: number;
  readonly phase: string;
  readonly done: number;
  readonly refused: number;
  readonly unknown: number;
  readonly faults: number;
  /** Those that are not undone yet. */
  readonly lasting: readonly string[];
}

export interface Outcome {
  readonly servers: string;
  /** Of the time in which there were faults. */
  readonly span: Span;
  readonly history: SystemHistory;
  /** The leases of those who lay in ambush. */
  readonly ambushed: readonly ResourceTenure[];
  readonly violations: readonly Violation[];
  readonly struck: readonly Struck[];
  readonly leftOut: Readonly<Record<string, number>>;
  readonly naps: number;
  /** What is no violation and yet worth a look. */
  readonly remarks: readonly string[];
  /** How often each ambush was sprung. */
  readonly traps: Readonly<Record<string, number>>;
}

/** When everything is healed, everybody gets a write stored within this time, or the system is stuck. */
const RECOVERY_MS = 60_000;
const PROGRESS_EVERY_MS = 500;

export async function run({ onProgress, ...options }: RunOptions): Promise<Outcome> {
  await using ending = new Ending();
  const folder = scratchFolder("faults");
  const log = new FaultLog();
  const state: { phase: string; stage?: Stage } = { phase: "starting" };
  const startedAt = performance.now();
  const teller = setInterval(() => {
    const tally = state.stage?.cast.tally ?? { done: 0, refused: 0, unknown: 0 };
    const elapsedMs = performance.now() - startedAt;
    onProgress?.({ elapsedMs, phase: state.phase, ...tally, faults: log.struck.length, lasting: log.lasting() });
  }, PROGRESS_EVERY_MS);
  ending.use({ [Symbol.asyncDispose]: async () => clearInterval(teller) });

  const stage = await setUp({ ...options, folder, ending });
  state.stage = stage;
  const tormented = await torment({ ...options, stage, log, ending, onPhase: (phase) => Object.assign(state, { phase }) });
  if (tormented.isRecovered) await stage.cast.leave();
  else await stage.cast[Symbol.asyncDispose](); // Nobody writes any more while it is looked at what there is.
  state.phase = "looking";
  await sleep(MAX_TTL_MS + 100);
  const history = await gather(folder, stage.store, options.mode);
  const { ambush, forsaken, isRecovered, span } = tormented;
  const ends = forsaken.map((node): Violation => ({ promise: "end", what: `${node} was not readmitted` }));
  if (!isRecovered) ends.push({ promise: "end", what: `not everybody got a write stored within ${RECOVERY_MS} ms after the last fault` });
  await ambush?.[Symbol.asyncDispose]();
  if (isRecovered)
    ends.push(...(await lockKeys(stage.fleet.nodes)).map((key): Violation => ({ promise: "end", what: `left behind: ${key}` })));
  const violations = [...judge(history, log.leaps), ...judgeAmbush(ambush?.tenures ?? [], log.leaps), ...ends];
  const { struck, leftOut } = log;
  const remarks = stage.gateways.flatMap(({ slowStarts }) => slowStarts);
  const ambushed = (ambush?.tenures ?? []).map((tenure) => ({ ...tenure, resource: AMBUSH }));
  return {
    servers: described(stage),
    span,
    history,
    ambushed,
    violations,
    struck,
    leftOut,
    naps: stage.cast.naps,
    remarks,
    traps: ambush?.counts ?? {},
  };
}

interface Torment extends Pick<RunOptions, "seed" | "mode" | "clients" | "durationMs"> {
  readonly stage: Stage;
  readonly log: FaultLog;
  readonly ending: Ending;
  readonly onPhase: (phase: string) => void;
}

/** From the first order to the last answer. */
async function torment({ seed, mode, clients, durationMs, stage, log, ending, onPhase }: Torment) {
  const { fleet, cast } = stage;
  const hopeless = new AbortController();
  const peace = new AbortController();
  const readmitted = (node: RedisNode): Promise<boolean> => believed(node, hopeless.signal);
  const nodes = new NodeStrikes({ fleet, log, readmitted, killKeepsMemory: true });
  const chance = chanceOf(seed, "ambush");
  const ambush =
    mode === "unfenced" ? undefined : await Ambush.prepare({ fleet, log, strikes: nodes, chance, maxTtlMs: MAX_TTL_MS, restMs: 4_000 });
  if (ambush !== undefined) ending.use(ambush);
  const plan = schedule(seed, durationMs, { nodes: NODES, gateways: GATEWAYS, clients });
  const nemesis = new Nemesis({ stage, plan, log, nodes, ambush, hopeless: hopeless.signal });
  onPhase("under fire");
  const fromAt = nowMs();
  cast.tell({ kind: "go" });
  const done = cast.all("done", hopeless.signal);
  done.catch(() => peace.abort()); // Somebody has failed: no more faults. It is reported where `done` is awaited.
  const torments = nemesis.torment(peace.signal);
  await Promise.race([sleep(durationMs, undefined, { ref: false }), done]);
  if (mode === "unfenced") await Promise.race([untilOverwritten(cast), done]);
  onPhase("undoing faults");
  const impatience = setTimeout(() => hopeless.abort(), RECOVERY_MS);
  await torments;
  onPhase("healed");
  const span = { fromAt, untilAt: nowMs() };
  cast.tell({ kind: "finish" });
  const isRecovered = await done;
  clearTimeout(impatience);
  return { span, isRecovered, ambush, forsaken: nodes.forsaken };
}

/** The control is there to be found wanting. On a machine so busy that nobody has written over anything yet, it goes on until somebody has, or nobody ever will. */
async function untilOverwritten({ tally }: Cast): Promise<void> {
  for (const givenUpAt = performance.now() + RECOVERY_MS; tally.overwrote === 0 && performance.now() < givenUpAt; )
    await sleep(PROGRESS_EVERY_MS, undefined, { ref: false });
}

function described({ fleet, store, gateways }: Stage): string {
  return `${fleet.description}; ${store.description}, a synchronous pair; ${gateways.length} gateways`;
}

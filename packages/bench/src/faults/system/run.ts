// One run of the whole system from the first server to the judged history. It decides the order of things: clients work while faults happen, everything is healed, each
// client gets one more write stored, all leave, the longest ttl passes, then it is looked at what there is.
import { setTimeout as sleep } from "node:timers/promises";
import { scratchFolder } from "@palisade/testkit";
import { lockKeys } from "../node-belief.js";
import { nowMs, type Span, type Violation } from "../tenure.js";
import { judge } from "./checkers/judge.js";
import { Ending } from "./ending.js";
import { FaultLog, type Struck } from "./fault-log.js";
import { gather } from "./gather.js";
import type { SystemHistory } from "./history.js";
import { Nemesis } from "./nemesis.js";
import { schedule } from "./schedule.js";
import { GATEWAYS, NODES, setUp } from "./set-up.js";
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
  readonly violations: readonly Violation[];
  readonly struck: readonly Struck[];
  readonly leftOut: Readonly<Record<string, number>>;
  readonly naps: number;
}

/** When everything is healed, everybody gets a write stored within this time, or the system is stuck. */
const RECOVERY_MS = 30_000;
const PROGRESS_EVERY_MS = 500;

export async function run({ onProgress, ...options }: RunOptions): Promise<Outcome> {
  await using ending = new Ending();
  const folder = scratchFolder("faults");
  const { seed, mode, clients, durationMs } = options;
  const log = new FaultLog();
  let phase = "starting";
  let cast: { readonly tally: { done: number; refused: number; unknown: number } } | undefined;
  const startedAt = performance.now();
  const teller = setInterval(() => {
    const tally = cast?.tally ?? { done: 0, refused: 0, unknown: 0 };
    onProgress?.({ elapsedMs: performance.now() - startedAt, phase, ...tally, faults: log.struck.length, lasting: log.lasting() });
  }, PROGRESS_EVERY_MS);
  ending.use({ [Symbol.asyncDispose]: async () => clearInterval(teller) });

  const stage = await setUp({ seed, mode, clients, folder, ending });
  cast = stage.cast;
  const plan = schedule(seed, durationMs, { nodes: NODES, gateways: GATEWAYS, clients });
  const hopeless = new AbortController();
  const peace = new AbortController();
  const nemesis = new Nemesis({ stage, plan, log, hopeless: hopeless.signal });
  phase = "under fire";
  const fromAt = nowMs();
  stage.cast.tell({ kind: "go" });
  const done = stage.cast.all("done", hopeless.signal);
  done.catch(() => peace.abort()); // Somebody has failed: no more faults. It is reported where `done` is awaited.
  const torments = nemesis.torment(peace.signal);
  await Promise.race([sleep(durationMs, undefined, { ref: false }), done]);
  phase = "undoing faults";
  const impatience = setTimeout(() => hopeless.abort(), RECOVERY_MS);
  await torments;
  phase = "healed";
  const span = { fromAt, untilAt: nowMs() };
  stage.cast.tell({ kind: "finish" });
  const isRecovered = await done;
  clearTimeout(impatience);
  if (isRecovered) await stage.cast.leave();
  phase = "looking";
  await sleep(MAX_TTL_MS + 100);
  const history = await gather(folder, stage.store, mode);
  const { struck, leftOut, leaps } = log;
  const ends = nemesis.nodes.forsaken.map((node): Violation => ({ promise: "end", what: `${node} was not readmitted` }));
  if (!isRecovered) ends.push({ promise: "end", what: `not everybody got a write stored within ${RECOVERY_MS} ms after the last fault` });
  else ends.push(...(await lockKeys(stage.fleet.nodes)).map((key): Violation => ({ promise: "end", what: `left behind: ${key}` })));
  const violations = [...judge(history, leaps), ...ends];
  const servers = `${stage.fleet.description}; ${stage.store.description}, a synchronous pair; ${stage.gateways.length} gateways`;
  return { servers, span, history, violations, struck, leftOut, naps: stage.cast.naps };
}

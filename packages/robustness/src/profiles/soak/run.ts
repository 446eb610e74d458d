// One soak from the first server to the last row. It decides the order of things: everything is opened, clients work while rows are taken and disturbances happen, and
// all of it is closed again, whether the time is over, somebody has interrupted it, or something failed.
import { setTimeout as sleep } from "node:timers/promises";
import type { Asked } from "./arguments.js";
import { Chronicle } from "./chronicle.js";
import type { ClientOrders } from "./client-words.js";
import { Crowd } from "./crowd.js";
import { disturb } from "./disturbances.js";
import { fill } from "./fill.js";
import { Sampler } from "./sampler.js";
import { Stage } from "./stage.js";

export interface Progress {
  readonly elapsedMs: number;
  readonly chronicle: Chronicle;
  readonly operations: number;
}

export interface Outcome {
  readonly chronicle: Chronicle;
  readonly servers: readonly string[];
  readonly operations: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
  readonly ending: "time is over" | "interrupted";
}

interface Hooks {
  /** Before the first operation: the gateway's memory of resources is filled. */
  readonly onFilled: (share: number) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly interrupted: AbortSignal;
}

const NAMESPACE = "soak";
const ROWS = 360;
const SHORTEST_MS = 100;
const LONGEST_MS = 5_000;
/** Between two disturbances at least; three rows in a long run. */
const CALM_MS = 5_000;

export async function soak(asked: Asked, { onFilled, onProgress, interrupted }: Hooks): Promise<Outcome> {
  const lastsMs = asked.minutes * 60_000;
  const everyMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, lastsMs / ROWS));
  const rows = Math.ceil(lastsMs / everyMs);
  await using stage = await Stage.open(NAMESPACE, everyMs);
  const servers = [stage.fleet.description, stage.postgres.description];
  await using crowd = new Crowd(ordersFor(asked, stage, everyMs));
  const pids = { ...stage.pids, ...crowd.pids };
  const chronicle = new Chronicle(asked.json, { asked, servers, pids, node: process.version, startedAt: new Date().toISOString() });
  await crowd.ready();
  await fill(stage, NAMESPACE, { onFilled, interrupted });
  crowd.go();
  const startedAt = performance.now();
  const elapsedMs = (): number => performance.now() - startedAt;
  const peace = new AbortController();
  const onDisturbance = (what: string): void => chronicle.addDisturbance({ atMs: elapsedMs(), what });
  const disturbances = disturb({ stage, crowd, everyMs: Math.max(CALM_MS, everyMs * 3), onDisturbance }, peace.signal);
  const sampler = new Sampler(stage, crowd, everyMs);
  const takeRows = async (): Promise<void> => {
    // On a machine that is too busy to take them in time, the same number of rows takes longer.
    for (let row = 1; row <= rows && !interrupted.aborted; row++) {
      await sleep(Math.max(0, row * everyMs - elapsedMs()), undefined, { signal: interrupted }).catch(nameAbort);
      chronicle.addRow({ atMs: elapsedMs(), values: await sampler.take() });
      onProgress({ elapsedMs: elapsedMs(), chronicle, operations: crowd.total });
    }
  };
  try {
    await Promise.race([takeRows(), crowd.lost, rejected(disturbances)]);
  } finally {
    peace.abort();
    await disturbances;
  }
  // Who has had enough does not wait for the last operations either: the clients are killed.
  if (!interrupted.aborted) await crowd.leave();
  const { operations, failures } = crowd;
  return { chronicle, servers, operations, failures, ending: interrupted.aborted ? "interrupted" : "time is over" };
}

/** Never resolves. */
async function rejected(work: Promise<void>): Promise<never> {
  await work;
  return await new Promise<never>(() => {});
}

function ordersFor({ clients, seed, perSecond, leaks }: Asked, stage: Stage, readingEveryMs: number): ClientOrders[] {
  return Array.from({ length: clients }, (_, index) => ({
    client: index + 1,
    seed,
    redisUrls: stage.fleet.urls,
    gatewayUrl: stage.gatewayUrl,
    namespace: NAMESPACE,
    perSecond: perSecond / clients,
    readingEveryMs,
    leaks: index === 0 ? leaks : [],
  }));
}

// Somebody has had enough: the last row is taken now.
function nameAbort(error: Error): "interrupted" {
  if (error.name === "AbortError") return "interrupted";
  throw error;
}

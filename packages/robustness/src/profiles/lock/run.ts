// One fault run from the first server to the judged history. It decides the order of things: clients work while faults happen, everything is healed, clients leave,
// the longest ttl passes, then the nodes are looked at.
import { setTimeout as sleep } from "node:timers/promises";
import { type AppendFsync, type FleetWay, RedisFleet, type RedisNode } from "@palisade/testkit";
import { Ambush, judgeAmbush } from "../../faults/ambush.js";
import { FaultLog } from "../../faults/fault-log.js";
import { believed, lockKeys } from "../../faults/readmission.js";
import { NodeStrikes } from "../../faults/redis-nodes.js";
import { chanceOf } from "../../harness/chance.js";
import type { Violation } from "../../history/lease-record.js";
import { judge } from "./checkers.js";
import type { ClientOrders, Kind } from "./client-words.js";
import { Crew } from "./crew.js";
import type { History } from "./history.js";
import { torment } from "./nemesis.js";
import { NetworkFaults } from "./network-faults.js";
import { NodeFaults } from "./node-faults.js";

export interface RunOptions {
  readonly seed: string;
  readonly kind: Kind;
  readonly processes: number;
  readonly leases: number;
  /** No new leases after so long. */
  readonly limitMs: number;
  readonly appendfsync: AppendFsync;
  readonly onProgress?: (state: { readonly leases: number; readonly faults: number; readonly elapsedMs: number }) => void;
}

export interface Outcome {
  readonly fleet: string;
  readonly elapsedMs: number;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly faults: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  /** How often each ambush was sprung. */
  readonly traps: Readonly<Record<string, number>>;
}

const TTL_MS = 400;
const MAX_TTL_MS = 800;
const LONG_STAY_TTL_MS = 150;
const NODE_TIMEOUT_MS = 60;
/** If nobody gets a lease for so long, with faults that last less than a second each, the lock is stuck. */
const STUCK_MS = 30_000;
const READMISSION_MS = 10_000;
const PROGRESS_EVERY_MS = 500;

export async function run(options: RunOptions): Promise<Outcome> {
  const { seed, appendfsync } = options;
  await using fleet = await RedisFleet.start({ nodes: 5, appendfsync });
  const ways = await Promise.all(Array.from({ length: options.processes }, () => fleet.anotherWay()));
  await using crew = new Crew(ordersFor(options, ways));
  await crew.all("ready");
  const hopeless = new AbortController();
  const { log, strikes, nodes, ambush } = await tormentors(fleet, options, hopeless.signal);
  const network = new NetworkFaults(ways, chanceOf(seed, "network"));
  const peace = new AbortController();
  const startedAt = performance.now();
  const torments = torment({ chance: chanceOf(seed, "nemesis"), crew, nodes, network, maxTtlMs: MAX_TTL_MS }, peace.signal);
  const lying = ambush?.lie(peace.signal);
  crew.tell({ kind: "go" });
  const faults = (): Record<string, number> => ({ ...log.counts(), ...network.counts, "client stopped": crew.stops });
  const work = supervise(crew, options, () => sum(faults()));
  const stuck = await work.finally(async () => {
    peace.abort();
    // Whatever came of it: no server is stopped while somebody still kills and restarts it.
    const impatience = setTimeout(() => hopeless.abort(), READMISSION_MS);
    await Promise.all([torments, lying]);
    await strikes.settled();
    clearTimeout(impatience);
  });
  const elapsedMs = performance.now() - startedAt;
  if (!stuck) await crew.leave();
  await ambush?.[Symbol.asyncDispose]();
  await sleep(MAX_TTL_MS);
  const history = {
    tenures: crew.tenures,
    stalls: crew.stalls,
    samples: nodes.samples,
    leaps: log.leaps,
    leftBehind: await lockKeys(fleet.nodes),
  };
  const ends = strikes.forsaken.map(
    (node): Violation => ({ promise: "end", what: `${node} was not readmitted within ${READMISSION_MS} ms` }),
  );
  if (stuck) ends.push({ promise: "end", what: `nobody got a lease for ${STUCK_MS} ms` });
  const { refusals } = crew;
  const violations = [...judge(history), ...judgeAmbush(ambush?.tenures ?? [], log.leaps), ...ends];
  return { fleet: fleet.description, elapsedMs, history, violations, faults: faults(), refusals, traps: ambush?.counts ?? {} };
}

async function tormentors(fleet: RedisFleet, { seed, kind, appendfsync }: RunOptions, hopeless: AbortSignal) {
  const log = new FaultLog();
  // A node of the control votes as soon as it is up.
  const readmitted = (node: RedisNode): Promise<boolean> => (kind === "naive" ? sleep(MAX_TTL_MS, true) : believed(node, hopeless));
  const strikes = new NodeStrikes({ fleet, log, readmitted, killKeepsMemory: appendfsync === "always" });
  const nodes = new NodeFaults({ fleet, strikes, chance: chanceOf(seed, "nodes") });
  const settings = { fleet, log, strikes, maxTtlMs: MAX_TTL_MS, restMs: 1_000, chance: chanceOf(seed, "ambush") };
  const ambush = kind === "naive" ? undefined : await Ambush.prepare(settings);
  return { log, strikes, nodes, ambush };
}

/** Until all are done; true if they came to a standstill. */
async function supervise(crew: Crew, { limitMs, onProgress }: RunOptions, faults: () => number): Promise<boolean> {
  const startedAt = performance.now();
  let leases = 0;
  let movedAt = startedAt;
  const done = crew.all("done").then(() => "done" as const);
  for (;;) {
    const word = await Promise.race([done, sleep(PROGRESS_EVERY_MS, "look" as const)]);
    const now = performance.now();
    if (crew.tenures.length > leases) movedAt = now;
    leases = crew.tenures.length;
    onProgress?.({ leases, faults: faults(), elapsedMs: now - startedAt });
    if (word === "done") return false;
    if (now - startedAt > limitMs) crew.tell({ kind: "enough" });
    if (now - movedAt > STUCK_MS) return true;
  }
}

function ordersFor({ seed, kind, processes, leases }: RunOptions, ways: readonly FleetWay[]): ClientOrders[] {
  // Each long stay keeps everybody waiting, so there are not more of them in a longer run than a few a second.
  const total = processes * leases;
  const longStays = Math.ceil(Math.min(total / 20, 160) / processes);
  return ways.map(({ urls }, client) => ({
    client,
    kind,
    seed,
    urls,
    leases,
    longStays,
    ttlMs: TTL_MS,
    longStayTtlMs: LONG_STAY_TTL_MS,
    maxTtlMs: MAX_TTL_MS,
    nodeTimeoutMs: NODE_TIMEOUT_MS,
  }));
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

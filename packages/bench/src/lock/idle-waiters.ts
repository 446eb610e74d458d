// What many callers cost that wait for a lock that another process holds, and how soon they get it.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisFleet } from "@palisade/testkit";
import { countProcessorTime, type Processes } from "../measure/cpu.js";
import type { Context, Part } from "../measure/part.js";
import { quantile, type Row, shown } from "../measure/results.js";
import { byKey } from "./libraries.js";
import { countedBy, LockBench, type LockProcess, withBefore } from "./lock-bench.js";

/** Longer than the row takes, so that the holder has nothing to renew while waiters are watched. */
const HELD_TTL_MS = 300_000;
const MOST_SETTLING_ROUNDS = 20;
const STEADY_ROUNDS = 3;
const HANDED_OVER = 40;
const HANDOVER_PAUSE_MS = 5;

export const idleWaitersPart: Part = {
  name: "idle-waiters",
  what: "processor time of 1 000 and 10 000 callers that wait, and their hand-over",
  from: "usual",
  run: idleWaiters,
};

async function idleWaiters(context: Context): Promise<void> {
  const crowds = [
    { usual: 1_000, entrants: ["palisade", "redlock5+", "semaphore+"] },
    { usual: 10_000, entrants: ["palisade"] },
  ];
  for (const { usual, entrants } of crowds) {
    const title = `${shown(usual, 0)} idle waiters`;
    const count = context.count(usual);
    context.progress.begin(title);
    const { seconds } = context.effort({ rounds: 1, seconds: 5 });
    const rows: Row[] = [];
    for (const key of withBefore(entrants, context)) {
      context.progress.step(byKey(key).name);
      rows.push(await waitersOf(key, { count, seconds }, context));
    }
    context.publish({
      id: `idle-waiters/${usual}`,
      title,
      remark: `one process waits for ${shown(count, 0)} resources that another holds, watched for ${seconds} s; then up to ${HANDED_OVER} of them are released one after the other`,
      columns: [
        { key: "clientCore", title: "client, % of a core", digits: 1 },
        { key: "redisCore", title: "all nodes, % of a core", digits: 1 },
        { key: "commands", title: "commands per s and node", digits: 0 },
        { key: "p50Us", title: "hand-over p50 µs", digits: 0 },
        { key: "longestUs", title: "longest µs", digits: 0 },
      ],
      rows,
    });
  }
}

async function waitersOf(key: string, { count, seconds }: { count: number; seconds: number }, context: Context): Promise<Row> {
  await using bench = await LockBench.start(context);
  const { fleet } = bench;
  const [holder, waiter] = bench.processes(2) as [LockProcess, LockProcess];
  await bench.open([holder, waiter], key, { ttlMs: HELD_TTL_MS });
  const resources = Array.from({ length: count }, (_, i) => `idle/${i}`);
  await holder.ask({ kind: "hold", key, resources });
  const handed = resources.slice(0, HANDED_OVER);
  const each = handed.map((resource) => waiter.ask<readonly number[]>({ kind: "await", key, resources: [resource] }));
  const others = waiter.ask({ kind: "await", key, resources: resources.slice(HANDED_OVER) });
  await settled(fleet, Math.min(1, seconds));
  const before = await commandsOf(fleet);
  const used = await coresDuring(seconds, bench.processesOf([waiter]));
  const commands = ((await commandsOf(fleet)) - before) / seconds / fleet.nodes.length;
  const latencies: number[] = [];
  for (const [i, resource] of handed.entries()) {
    const releasedUs = await holder.ask<number>({ kind: "release", resources: [resource] });
    latencies.push(((await each[i])?.[0] ?? 0) - releasedUs);
    await sleep(HANDOVER_PAUSE_MS);
  }
  await holder.ask({ kind: "release", resources });
  await others;
  const { name, library } = byKey(key);
  if (Math.min(...latencies) < 0) throw new Error(`${name}: a lease of the holder ended before it was released`);
  const figures = { ...used, commands, p50Us: quantile(latencies, 0.5), longestUs: Math.max(...latencies) };
  return { name, kind: library.kind, does: library.does, figures, rounds: {} };
}

/** In per cent of a core. */
async function coresDuring(seconds: number, processes: Processes): Promise<Record<string, number>> {
  const used = countProcessorTime(processes);
  const startedAt = performance.now();
  await sleep(seconds * 1_000);
  const perCore = 100 / (1_000 * (performance.now() - startedAt));
  return Object.fromEntries(Object.entries(used()).map(([role, us]) => [`${role}Core`, us * perCore]));
}

/**
 * Until the nodes are asked no less than a moment before, and so for a while: all callers have
 * asked, and wait. A second wave may follow the first, when connections for waiting are there.
 */
async function settled(fleet: RedisFleet, seconds: number): Promise<void> {
  let last = await commandsOf(fleet);
  let before = Number.POSITIVE_INFINITY;
  let steady = 0;
  for (let round = 0; round < MOST_SETTLING_ROUNDS && steady < STEADY_ROUNDS; round += 1) {
    await sleep(seconds * 1_000);
    const now = await commandsOf(fleet);
    steady = now - last > 0.8 * before ? steady + 1 : 0;
    before = now - last;
    last = now;
  }
}

/** Those that scripts run are counted, too: an idle fleet runs hardly any. */
async function commandsOf(fleet: RedisFleet): Promise<number> {
  const [commands = 0] = await countedBy(fleet, "stats", /total_commands_processed:(\d+)/);
  return commands;
}

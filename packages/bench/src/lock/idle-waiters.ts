// What many callers cost that wait for a lock that another process holds, and how soon they get it.
import { setTimeout as sleep } from "node:timers/promises";
import { RedisFleet } from "@palisade/testkit";
import { countProcessorTime } from "../measure/cpu.js";
import type { Context, Part } from "../measure/part.js";
import type { Column, Row } from "../measure/results.js";
import { quantile } from "../measure/statistics.js";
import { shown } from "../measure/text.js";
import { byKey } from "./configurations.js";
import { type LockProcess, openIn, processesOf, startLockProcess, withBefore } from "./lock-process.js";

/** Longer than the row takes, so that the holder has nothing to renew while waiters are watched. */
const HELD_TTL_MS = 300_000;
const MOST_SETTLING_ROUNDS = 20;
const STEADY_ROUNDS = 3;
const HANDED_OVER = 40;
const HANDOVER_PAUSE_MS = 5;

const cores: readonly Column[] = [
  { key: "clientCore", title: "client, % of a core", digits: 1 },
  { key: "redisCore", title: "all nodes, % of a core", digits: 1 },
];

export const idleWaitersPart: Part & { run(context: Context): Promise<void> } = {
  name: "idle-waiters",
  what: "processor time of 1 000 and 10 000 callers that wait, and their hand-over",
  from: "usual",
  run: idleWaiters,
};

async function coresDuring(seconds: number, clients: readonly LockProcess[], fleet: RedisFleet): Promise<Record<string, number>> {
  const used = countProcessorTime(processesOf(clients, fleet));
  const startedAt = performance.now();
  await sleep(seconds * 1_000);
  const perCore = 100 / (1_000 * (performance.now() - startedAt));
  const { client, redis } = used();
  return {
    ...(client === undefined ? {} : { clientCore: client * perCore }),
    ...(redis === undefined ? {} : { redisCore: redis * perCore }),
  };
}

function rowFor(key: string, figures: Readonly<Record<string, number>>): Row {
  const { name, library } = byKey(key);
  return { name, kind: library.kind, does: library.does, figures, rounds: {} };
}

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
    for (const key of withBefore(entrants, context.beside)) {
      context.progress.step(byKey(key).name);
      rows.push(await waitersOf(key, { count, seconds, beside: context.beside }));
    }
    context.publish({
      id: `idle-waiters/${usual}`,
      title,
      remark: `one process waits for ${shown(count, 0)} resources that another holds, watched for ${seconds} s; then up to ${HANDED_OVER} of them are released one after the other`,
      columns: [
        ...cores,
        { key: "commands", title: "commands per s and node", digits: 0 },
        { key: "p50Us", title: "hand-over p50 µs", digits: 0 },
        { key: "longestUs", title: "longest µs", digits: 0 },
      ],
      rows,
    });
  }
}

interface Waiting {
  readonly count: number;
  readonly seconds: number;
  readonly beside: string | undefined;
}

async function waitersOf(key: string, { count, seconds, beside }: Waiting): Promise<Row> {
  await using fleet = await RedisFleet.start({ nodes: 5, provider: "local", clock: "real", config: { appendonly: "no" } });
  const [holder, waiter] = [startLockProcess(), startLockProcess()];
  try {
    const urls = fleet.nodes.map(({ directUrl }) => directUrl);
    await openIn([holder, waiter], key, { urls, beside, settings: { ttlMs: HELD_TTL_MS } });
    const resources = Array.from({ length: count }, (_, i) => `idle/${i}`);
    await holder.ask({ kind: "hold", key, resources });
    const handed = resources.slice(0, HANDED_OVER);
    const each = handed.map(
      async (resource) => (await waiter.ask<readonly number[]>({ kind: "await", key, resources: [resource] }))[0] ?? 0,
    );
    const others = waiter.ask({ kind: "await", key, resources: resources.slice(HANDED_OVER) });
    await settled(fleet, Math.min(1, seconds));
    const before = await commandsOf(fleet);
    const used = await coresDuring(seconds, [waiter], fleet);
    const commands = ((await commandsOf(fleet)) - before) / seconds / fleet.nodes.length;
    const latencies: number[] = [];
    for (const [i, resource] of handed.entries()) {
      const releasedUs = await holder.ask<number>({ kind: "release", resources: [resource] });
      latencies.push(((await each[i]) ?? 0) - releasedUs);
      await sleep(HANDOVER_PAUSE_MS);
    }
    await holder.ask({ kind: "release", resources });
    await others;
    if (Math.min(...latencies) < 0) throw new Error(`${byKey(key).name}: a lease of the holder ended before it was released`);
    return rowFor(key, { ...used, commands, p50Us: quantile(latencies, 0.5), longestUs: Math.max(...latencies) });
  } finally {
    await Promise.all([holder.kill(), waiter.kill()]);
  }
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
  const all = await Promise.all(fleet.nodes.map((node) => node.cli("INFO", "stats")));
  return all.reduce<number>((total, info) => total + Number(/total_commands_processed:(\d+)/.exec(String(info))?.[1]), 0);
}

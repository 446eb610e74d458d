// Acquire and release of what nobody else wants: one at a time and many at once, by one process and
// by several, on fleets of different sizes, with a log on disk, over slower networks.
import { RedisFleet } from "@palisade/testkit";
import { type Contestant, type Effort, type Plan, together } from "../measure/comparison.js";
import type { Context, Part } from "../measure/part.js";
import type { Column } from "../measure/results.js";
import { median } from "../measure/statistics.js";
import type { Names } from "./client.js";
import { byKey } from "./configurations.js";
import { type LockProcess, openIn, processesOf, startLockProcess, withBefore } from "./lock-process.js";

const EFFORT: Effort = { rounds: 7, seconds: 0.25 };
/** Of the rows that goals of a few hundredths are judged by. */
const FINE: Effort = { rounds: 15, seconds: 0.4 };

interface Shape {
  readonly id: string;
  readonly title: string;
  readonly nodes?: number;
  readonly log?: "none" | "always";
  /** Of the network, each way. */
  readonly delayMs?: number;
  readonly processes?: number;
  readonly atOnce?: number;
  readonly names?: Names;
  readonly entrants: readonly string[];
}

const few = ["floor", "palisade", "redlock5", "semaphore"];
const everybody = ["floor", "palisade", "redlock5", "sesamecare", "semaphore", "redlock4", "universal"];
const crowd = ["floor", "floor+", "palisade", "redlock5", "redlock5+", "sesamecare+", "semaphore", "semaphore+"];
const wholeCrowd = [...crowd, "redlock4+", "universal+"];

const shapes: Readonly<Record<string, readonly Shape[]>> = {
  "one-at-a-time": [{ id: "one-at-a-time", title: "One at a time", entrants: [...everybody, "redlock5+", "sesamecare+"] }],
  "fresh-names": [{ id: "fresh-names", title: "One at a time, names never locked before", names: "fresh", entrants: everybody }],
  processes: [2, 4].flatMap((processes) =>
    (["reused", "fresh"] as const).map((names) => ({
      id: `processes/${processes}-${names}`,
      title: `${processes} processes, one at a time each, ${names === "fresh" ? "names never locked before" : "names used again"}`,
      processes,
      names,
      entrants: few,
    })),
  ),
  "16-at-once": [{ id: "16-at-once", title: "16 at once", atOnce: 16, entrants: crowd }],
  "64-at-once": [{ id: "64-at-once", title: "64 at once", atOnce: 64, entrants: crowd }],
  "256-at-once": [{ id: "256-at-once", title: "256 at once", atOnce: 256, entrants: wholeCrowd }],
  "1024-at-once": [{ id: "1024-at-once", title: "1 024 at once", atOnce: 1_024, entrants: crowd }],
  nodes: [1, 3, 7].map((nodes) => ({
    id: `nodes/${nodes}`,
    title: `${nodes === 1 ? "One node" : `${nodes} nodes`}, one at a time`,
    nodes,
    entrants: few,
  })),
  log: [1, 64].map((atOnce) => ({
    id: `log/${atOnce}`,
    title: `Nodes that force each write to disk (appendfsync always), ${atOnce === 1 ? "one at a time" : `${atOnce} at once`}`,
    log: "always" as const,
    atOnce,
    entrants: atOnce === 1 ? few : crowd,
  })),
  network: [1, 5].flatMap((delayMs) =>
    [1, 64].map((atOnce) => ({
      id: `network/${delayMs}-ms-${atOnce}`,
      title: `A network of ${delayMs} ms each way, ${atOnce === 1 ? "one at a time" : `${atOnce} at once`}`,
      delayMs,
      atOnce,
      entrants: atOnce === 1 ? few : ["floor+", "palisade", "redlock5+", "semaphore+"],
    })),
  ),
};

const what: Readonly<Record<string, string>> = {
  "one-at-a-time":
    "acquire + release: Palisade, the least that any lock over N masters has to do (the floor), five other Redlock libraries",
  "fresh-names": "the same with names that were never locked before",
  processes: "2 and 4 processes side by side, and how many leases took a second round",
  nodes: "1, 3 and 7 nodes",
  log: "nodes with appendfsync always",
  network: "networks of 1 and 5 ms each way",
};

const headlines = new Set(["one-at-a-time", "fresh-names", "256-at-once"]);
const headlineEntrants = new Set(["floor", "palisade", "redlock5", "redlock5+", "sesamecare", "semaphore", "semaphore+"]);

export const uncontendedParts: readonly (Part & { run(context: Context): Promise<void> })[] = Object.entries(shapes).map(
  ([name, list]) => ({
    name,
    what: what[name] ?? "so many callers in one process, each with its own resource; peers with and without ioredis' auto-pipelining",
    from: headlines.has(name) ? "quick" : "usual",
    async run(context) {
      for (const shape of list) await measure(shape, context);
    },
  }),
);

async function measure(shape: Shape, context: Context): Promise<void> {
  const { nodes = 5, log = "none", delayMs = 0 } = shape;
  context.progress.begin(shape.title);
  // No proxy where there is no delay, and no log unless it is measured: only the network and the
  // scripts are compared.
  await using fleet = await RedisFleet.start({
    nodes,
    provider: "local",
    clock: "real",
    ...(log === "none" ? { config: { appendonly: "no" } } : {}),
  });
  for (const node of fleet.nodes) node.slow(delayMs);
  context.note("redis", await redisVersion(fleet));
  const urls = delayMs === 0 ? fleet.nodes.map(({ directUrl }) => directUrl) : fleet.urls;
  const keys = shape.entrants.filter((key) => context.scope !== "quick" || headlineEntrants.has(key));
  const opened: LockProcess[] = [];
  try {
    const contestants: Contestant[] = [];
    for (const key of withBefore(keys, context.beside)) {
      const own = Array.from({ length: shape.processes ?? 1 }, () => startLockProcess());
      opened.push(...own);
      await openIn(own, key, { urls, beside: context.beside });
      contestants.push(contestant(key, shape, { own, fleet }));
    }
    await context.compare(planOf(shape, contestants, context));
  } finally {
    await Promise.all(opened.map((one) => one.kill()));
  }
}

async function redisVersion(fleet: RedisFleet): Promise<string> {
  const info = String(await fleet.node("n1").cli("INFO", "server"));
  return /(?:valkey|redis)_version:(\S+)/.exec(info)?.[1] ?? "unknown";
}

function planOf(shape: Shape, contestants: readonly Contestant[], context: Context): Plan {
  const { id, title, nodes = 5, log = "none", atOnce = 1, delayMs = 0 } = shape;
  const network = delayMs === 0 ? "" : `, behind proxies that keep every packet for ${delayMs} ms or up to one more`;
  const masters = nodes === 1 ? "one master" : `${nodes} masters`;
  return {
    id,
    title,
    remark: `acquire + release, ${masters} on loopback${log === "none" ? " without a log" : ""}${network}`,
    effort: context.effort(id === "one-at-a-time" || id === "fresh-names" ? FINE : EFFORT),
    contestants,
    ...(atOnce === 1 ? { compared: "p50Us" } : { compared: "perSecond", reference: "best peer" }),
    columns: watchesRounds(shape) ? [secondRounds] : [],
  };
}

const secondRounds: Column = { key: "secondRounds", title: "second rounds %", digits: 1 };
const WATCH_SECONDS = 1;

/** Whether the nodes may disagree about the token of a grant. */
function watchesRounds({ names = "reused", processes = 1 }: Shape): boolean {
  return names === "fresh" || processes > 1;
}

function contestant(key: string, shape: Shape, { own, fleet }: { own: readonly LockProcess[]; fleet: RedisFleet }): Contestant {
  const { name, library } = byKey(key);
  const { atOnce = 1, names = "reused" } = shape;
  const ask = { key, atOnce, names };
  return {
    name,
    kind: library.kind,
    does: library.does,
    processes: processesOf(own, fleet),
    async round(seconds) {
      return together(
        await Promise.all(own.map((one) => one.ask<Awaited<ReturnType<Contestant["round"]>>>({ kind: "load", seconds, ...ask }))),
      );
    },
    ...(library.kind === "ours" && watchesRounds(shape)
      ? {
          async after() {
            const shares = await Promise.all(own.map((one) => one.ask<number>({ kind: "watch", seconds: WATCH_SECONDS, ...ask })));
            return { secondRounds: 100 * median(shares) };
          },
        }
      : {}),
  };
}

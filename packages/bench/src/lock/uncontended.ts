// Acquire and release of what no other process wants: one at a time and many at once, by one process
// and by several, on fleets of different sizes; and of one lock by many callers of one process.
import type { RedisFleet } from "@palisade/testkit";
import { type Contestant, type Effort, type Plan, type Round, together } from "../measure/comparison.js";
import type { Context, Part } from "../measure/part.js";
import type { Names } from "./client.js";
import { LockBench, type LockProcess, withBefore } from "./lock-bench.js";

const EFFORT: Effort = { rounds: 7, seconds: 0.25 };
/** Of the rows that goals of a few hundredths are judged by. */
const FINE: Effort = { rounds: 15, seconds: 0.4 };

interface Shape {
  readonly id: string;
  readonly title: string;
  readonly nodes?: number;
  readonly processes?: number;
  readonly atOnce?: number;
  readonly names?: Names;
  readonly entrants: readonly string[];
}

const few = ["floor", "palisade", "redlock5", "semaphore"];
const everybody = ["floor", "palisade", "redlock5", "sesamecare", "semaphore", "universal"];
const crowd = ["floor", "floor+", "palisade", "redlock5", "redlock5+", "sesamecare+", "semaphore", "semaphore+", "universal+"];

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
  "256-at-once": [{ id: "256-at-once", title: "256 at once", atOnce: 256, entrants: crowd }],
  "hot-local": [
    {
      id: "hot-local",
      title: "16 callers of one process want one lock",
      atOnce: 16,
      names: "hot",
      entrants: ["palisade", "redlock5!", "semaphore"],
    },
  ],
  nodes: [1, 3, 7].map((nodes) => ({
    id: `nodes/${nodes}`,
    title: `${nodes === 1 ? "One node" : `${nodes} nodes`}, one at a time`,
    nodes,
    entrants: few,
  })),
};

const what: Readonly<Record<string, string>> = {
  "one-at-a-time":
    "acquire + release: Palisade, the least that any lock over N masters has to do (the floor), four other Redlock libraries",
  "fresh-names": "the same with names that were never locked before",
  processes: "2 and 4 processes side by side",
  "hot-local": "16 callers of one process that want one lock over and over, beside one caller: what the nodes do for each",
  nodes: "1, 3 and 7 nodes",
};

const headlines = new Set(["one-at-a-time", "fresh-names", "256-at-once"]);
const headlineEntrants = new Set(["floor", "palisade", "redlock5", "redlock5+", "sesamecare", "semaphore", "semaphore+"]);

export const uncontendedParts: readonly Part[] = Object.entries(shapes).map(([name, list]) => ({
  name,
  what: what[name] ?? "so many callers in one process, each with its own resource; peers with and without ioredis' auto-pipelining",
  from: headlines.has(name) ? "quick" : "usual",
  async run(context) {
    for (const shape of list) await measure(shape, context);
  },
}));

async function measure(shape: Shape, context: Context): Promise<void> {
  const { nodes = 5 } = shape;
  context.progress.begin(shape.title);
  await using bench = await LockBench.start(context, { nodes });
  const keys = shape.entrants.filter((key) => context.scope !== "quick" || headlineEntrants.has(key));
  const contestants: Contestant[] = [];
  for (const key of withBefore(keys, context)) {
    const own = bench.processes(shape.processes ?? 1);
    await bench.open(own, key);
    const crowd = contestant(bench, key, { own, shape });
    if (shape.names === "hot") {
      const alone = contestant(bench, key, { own, shape: { ...shape, atOnce: 1 } });
      contestants.push({ ...alone, name: `${alone.name}, one caller` });
    }
    contestants.push(crowd);
  }
  await context.compare(planOf(shape, contestants, context));
}

function planOf(shape: Shape, contestants: readonly Contestant[], context: Context): Plan {
  const { id, title, nodes = 5, atOnce = 1 } = shape;
  const masters = nodes === 1 ? "one master" : `${nodes} masters`;
  return {
    id,
    title,
    remark: `acquire + release, ${masters} on loopback without a log`,
    effort: context.effort(id === "one-at-a-time" || id === "fresh-names" ? FINE : EFFORT),
    contestants,
    ...(atOnce === 1 ? { compared: "p50Us" } : { compared: "perSecond", reference: "best peer" }),
  };
}

function contestant(bench: LockBench, key: string, { own, shape }: { own: readonly LockProcess[]; shape: Shape }): Contestant {
  const { atOnce = 1, names = "reused" } = shape;
  const ask = { key, atOnce, names };
  const load = async (seconds: number): Promise<Round> =>
    together(await Promise.all(own.map((one) => one.ask<Round>({ kind: "load", seconds, ...ask }))));
  return bench.contestant(key, own, load);
}

// What one dead, one stopped and one slow node cost: the same libraries on four fleets, of which one is well.

const SLOW_MS = 50;

const conditions = {
  "all nodes well": async () => {},
  "one node stopped": (fleet: RedisFleet) => fleet.node("n5").pause(),
  "one node dead": (fleet: RedisFleet) => fleet.node("n5").kill(),
  "one node slow": async (fleet: RedisFleet) => fleet.node("n5").slow(SLOW_MS),
} as const;

export const faultyNodesPart: Part = {
  name: "faulty-nodes",
  what: "one node of five dead, stopped or slow, beside a fleet that is well",
  from: "usual",
  async run(context) {
    for (const atOnce of [1, 64]) await measureFaulty(atOnce, context);
  },
};

async function measureFaulty(atOnce: number, context: Context): Promise<void> {
  const title = `One node of five dead, stopped or slow, ${atOnce === 1 ? "one at a time" : `${atOnce} at once`}`;
  context.progress.begin(title);
  const keys = withBefore(["palisade", atOnce === 1 ? "floor" : "floor+", atOnce === 1 ? "redlock5" : "redlock5+"], context);
  const benches: LockBench[] = [];
  try {
    const contestants: Contestant[] = [];
    for (const [condition, inflict] of Object.entries(conditions)) {
      // Only the last node is behind its proxy.
      const bench = await LockBench.start(context, { urlOf: (node) => (node.name === "n5" ? node.url : node.directUrl) });
      benches.push(bench);
      for (const key of keys) {
        const own = bench.processes(1);
        await bench.open(own, key);
        const load = (seconds: number) => own[0]?.ask<Round>({ kind: "load", key, seconds, atOnce, names: "reused" }) as Promise<Round>;
        const contestant = bench.contestant(key, own, load);
        contestants.push({ ...contestant, name: `${contestant.name}, ${condition}` });
      }
      await inflict(bench.fleet);
    }
    await context.compare({
      id: `faulty-nodes/${atOnce}`,
      title,
      remark: `acquire + release, five masters on loopback without a log; the slow node ${SLOW_MS} ms away`,
      effort: context.effort({ rounds: 9, seconds: 0.4 }),
      contestants,
      compared: atOnce === 1 ? "p50Us" : "perSecond",
    });
  } finally {
    for (const bench of benches) await bench[Symbol.asyncDispose]();
  }
}

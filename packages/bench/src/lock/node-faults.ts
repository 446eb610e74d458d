// What one dead and one slow node cost: the same libraries on three fleets, of which one is well.
import type { RedisFleet } from "@palisade/testkit";
import type { Contestant, Round } from "../measure/comparison.js";
import type { Context, Part } from "../measure/part.js";
import { LockBench, withBefore } from "./lock-bench.js";

const SLOW_MS = 50;

const conditions = {
  "all nodes well": async () => {},
  "one node dead": (fleet: RedisFleet) => fleet.node("n5").kill(),
  "one node slow": async (fleet: RedisFleet) => fleet.node("n5").slow(SLOW_MS),
} as const;

export const faultyNodesPart: Part = {
  name: "faulty-nodes",
  what: "one node of five dead, and one slow, beside a fleet that is well",
  from: "usual",
  async run(context) {
    for (const atOnce of [1, 64]) await measure(atOnce, context);
  },
};

async function measure(atOnce: number, context: Context): Promise<void> {
  const title = `One node of five dead or slow, ${atOnce === 1 ? "one at a time" : `${atOnce} at once`}`;
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

// What one dead and one slow node cost: the same libraries on three fleets, of which one is well.
import { RedisFleet } from "@palisade/testkit";
import type { Contestant, Round } from "../measure/comparison.js";
import type { Context, Part } from "../measure/part.js";
import { byKey } from "./configurations.js";
import { type LockProcess, openIn, processesOf, startLockProcess, withBefore } from "./lock-process.js";

const SLOW_MS = 50;

const conditions = {
  "all nodes well": async () => {},
  "one node dead": (fleet: RedisFleet) => fleet.node("n5").kill(),
  "one node slow": async (fleet: RedisFleet) => fleet.node("n5").slow(SLOW_MS),
} as const;

export const faultyNodesPart: Part & { run(context: Context): Promise<void> } = {
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
  const keys = withBefore(["palisade", atOnce === 1 ? "floor" : "floor+", atOnce === 1 ? "redlock5" : "redlock5+"], context.beside);
  const opened: LockProcess[] = [];
  const fleets: RedisFleet[] = [];
  try {
    const contestants: Contestant[] = [];
    for (const [condition, inflict] of Object.entries(conditions)) {
      const fleet = await RedisFleet.start({ nodes: 5, provider: "local", clock: "real", config: { appendonly: "no" } });
      fleets.push(fleet);
      // Only the last node is behind its proxy.
      const urls = fleet.nodes.map((node) => (node.name === "n5" ? node.url : node.directUrl));
      for (const key of keys) {
        const one = startLockProcess();
        opened.push(one);
        await openIn([one], key, { urls, beside: context.beside });
        contestants.push(contestant(key, condition, { one, fleet, atOnce }));
      }
      await inflict(fleet);
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
    await Promise.all(opened.map((one) => one.kill()));
    await Promise.all(fleets.map((fleet) => fleet.stop()));
  }
}

interface Place {
  readonly one: LockProcess;
  readonly fleet: RedisFleet;
  readonly atOnce: number;
}

function contestant(key: string, condition: string, { one, fleet, atOnce }: Place): Contestant {
  const { name, library } = byKey(key);
  return {
    name: `${name}, ${condition}`,
    kind: library.kind,
    does: library.does,
    processes: processesOf([one], fleet),
    round: (seconds) => one.ask<Round>({ kind: "load", key, seconds, atOnce, names: "reused" }),
  };
}

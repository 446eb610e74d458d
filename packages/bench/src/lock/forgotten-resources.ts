// Whether a node forgets resources that are no longer used: its memory before a million distinct
// resources, at the most, and after their retention.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker } from "@palisade/lock";
import { RedisFleet, type RedisNode } from "@palisade/testkit";
import type { Context, Part } from "../measure/part.js";
import { shown } from "../measure/text.js";

const RESOURCES = 1_000_000;
const AT_ONCE = 512;
const RETENTION_MS = 5_000;
const FORGET_TIMEOUT_MS = 60_000;

async function usedBytes(node: RedisNode): Promise<number> {
  const info = String(await node.cli("INFO", "memory"));
  return Number(/used_memory:(\d+)/.exec(info)?.[1]);
}

async function keys(node: RedisNode): Promise<number> {
  return Number(await node.cli("DBSIZE"));
}

export const forgottenResourcesPart: Part & { run(context: Context): Promise<void> } = {
  name: "forgotten-resources",
  what: "a node's memory before, during and after a million distinct resources",
  from: "all",
  run: forgottenResources,
};

async function forgottenResources(context: Context): Promise<void> {
  const title = `${shown(RESOURCES, 0)} distinct resources`;
  context.progress.begin(title);
  await using fleet = await RedisFleet.start({ nodes: 5, clock: "real", config: { appendonly: "no" } });
  const node = fleet.node("n1");
  const nodes = fleet.nodes.map(({ directUrl }) => directUrl);
  await using locker = createLocker({ nodes, ttlMs: 2_000, maxTtlMs: 2_000, retentionMs: RETENTION_MS });
  await locker.ready();
  await (await locker.acquire("warm-up")).release();
  await untilForgotten(node);
  const before = await usedBytes(node);
  let next = 0;
  let most = 0;
  const startedAt = performance.now();
  const caller = async (): Promise<void> => {
    while (next < RESOURCES) {
      const number = next++;
      if (number % 20_000 === 0) {
        most = Math.max(most, await usedBytes(node));
        context.progress.step(`${shown(number, 0)} of ${shown(RESOURCES, 0)}`);
      }
      await (await locker.acquire(`once/${number}`)).release();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  const perSecond = RESOURCES / ((performance.now() - startedAt) / 1_000);
  context.progress.step("waiting for the retention to pass");
  await untilForgotten(node);
  const figures = { beforeMb: before / 1e6, mostMb: most / 1e6, afterMb: (await usedBytes(node)) / 1e6, left: await keys(node), perSecond };
  context.publish({
    id: "forgotten-resources",
    title,
    remark: `taken and given back once each, ${AT_ONCE} at once, retention shortened to ${RETENTION_MS / 1_000} s; memory of one of five nodes`,
    columns: [
      { key: "beforeMb", title: "MB before", digits: 2 },
      { key: "mostMb", title: "at the most", digits: 2 },
      { key: "afterMb", title: "after", digits: 2 },
      { key: "left", title: "keys left", digits: 0 },
      { key: "perSecond", title: "per s", digits: 0 },
    ],
    rows: [{ name: "@palisade/lock", kind: "ours", does: "one lease of each resource", figures, rounds: {} }],
  });
}

/** Two keys stay: the floor of the tokens and the node's admission record. */
async function untilForgotten(node: RedisNode): Promise<void> {
  const giveUpAt = performance.now() + FORGET_TIMEOUT_MS;
  while ((await keys(node)) > 2) {
    if (performance.now() > giveUpAt) throw new Error(`${await keys(node)} keys are still there after ${FORGET_TIMEOUT_MS} ms`);
    await sleep(100);
  }
}

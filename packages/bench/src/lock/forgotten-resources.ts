// Whether a node forgets resources that are no longer used: its memory before a million distinct
// resources, at the most, and after their retention.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker } from "@palisade/lock";
import { RedisFleet, type RedisNode } from "@palisade/testkit";
import { fixed, heading, progress, progressEnded, table, whole } from "../report.js";

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

export async function forgottenResources(): Promise<void> {
  heading(
    `${whole(RESOURCES)} distinct resources`,
    `taken and given back once each, ${AT_ONCE} at once, retention shortened to ${RETENTION_MS / 1000} s; memory of one of five nodes`,
  );
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
        progress(`${whole(number)} of ${whole(RESOURCES)}`);
      }
      await (await locker.acquire(`once/${number}`)).release();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  const tookMs = performance.now() - startedAt;
  await untilForgotten(node);
  progressEnded();
  const after = await usedBytes(node);
  const mb = (bytes: number): string => fixed(bytes / 1e6, 2);
  console.log(
    table(
      [{ title: "MB before" }, { title: "at the most" }, { title: "after" }, { title: "keys left" }, { title: "per s" }],
      [[mb(before), mb(most), mb(after), String(await keys(node)), whole(RESOURCES / (tookMs / 1000))]],
    ),
  );
}

/** Two keys stay: the floor of the tokens and the node's admission record. */
async function untilForgotten(node: RedisNode): Promise<void> {
  const giveUpAt = performance.now() + FORGET_TIMEOUT_MS;
  while ((await keys(node)) > 2) {
    if (performance.now() > giveUpAt) throw new Error(`${await keys(node)} keys are still there after ${FORGET_TIMEOUT_MS} ms`);
    progress("waiting for the retention to pass");
    await sleep(100);
  }
}

// Whether a node forgets resources that nobody uses any more: its memory before, at the most, and after the retention of a million distinct resources.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker } from "@palisade/lock";
import { RedisFleet, type RedisNode } from "@palisade/testkit";
import { fixed, heading, progress, progressEnded, table, whole } from "../report.js";

const resources = 1_000_000;
const atOnce = 512;
const retentionMs = 5_000;
const patienceMs = 60_000;

async function usedBytes(node: RedisNode): Promise<number> {
  const info = String(await node.cli("INFO", "memory"));
  return Number(/used_memory:(\d+)/.exec(info)?.[1]);
}

async function keys(node: RedisNode): Promise<number> {
  return Number(await node.cli("DBSIZE"));
}

export async function forgottenResources(): Promise<void> {
  heading(
    `${whole(resources)} distinct resources`,
    `taken and given back once each, ${atOnce} at once, retention shortened to ${retentionMs / 1000} s; memory of one of five nodes`,
  );
  await using fleet = await RedisFleet.start({ nodes: 5, clock: "real", config: { appendonly: "no" } });
  const node = fleet.node("n1");
  await using locker = createLocker({ nodes: fleet.nodes.map(({ directUrl }) => directUrl), ttlMs: 2_000, maxTtlMs: 2_000, retentionMs });
  await locker.ready();
  await (await locker.acquire("warm-up")).release();
  await untilForgotten(node);
  const before = await usedBytes(node);
  let next = 0;
  let most = 0;
  const startedAt = performance.now();
  const caller = async (): Promise<void> => {
    while (next < resources) {
      const number = next++;
      if (number % 20_000 === 0) {
        most = Math.max(most, await usedBytes(node));
        progress(`${whole(number)} of ${whole(resources)}`);
      }
      await (await locker.acquire(`once/${number}`)).release();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, caller));
  const tookMs = performance.now() - startedAt;
  await untilForgotten(node);
  progressEnded();
  const after = await usedBytes(node);
  const mb = (bytes: number): string => fixed(bytes / 1e6, 2);
  console.log(
    table(
      [{ title: "MB before" }, { title: "at the most" }, { title: "after" }, { title: "keys left" }, { title: "per s" }],
      [[mb(before), mb(most), mb(after), String(await keys(node)), whole(resources / (tookMs / 1000))]],
    ),
  );
}

/** The floor and the node's record stay; everything else has an end. */
async function untilForgotten(node: RedisNode): Promise<void> {
  const givenUpAt = performance.now() + patienceMs;
  while ((await keys(node)) > 2) {
    if (performance.now() > givenUpAt) throw new Error(`${await keys(node)} keys are still there after ${patienceMs} ms`);
    progress("waiting for the retention to pass");
    await sleep(100);
  }
}

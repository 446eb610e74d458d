// How soon the next holder, in another process, has a lock that was released: one process holds it, the other waits for it, and they change places. Both read the
// same monotonic clock of the machine.
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fixed, heading, progress, progressEnded, table } from "../report.js";
import { quantile } from "../statistics.js";
import type { Enter, Waiter } from "./contestant.js";
import type { Ask, Told } from "./handover-waiter.js";

const handovers = 60;
/** Long enough for a waiter to be told that the lock is held, and to be asleep. */
const holdMs = 40;

/** Milliseconds from the call of release here to the lock in the other process, one after another. */
async function measure(here: Waiter, index: number, urls: readonly string[]): Promise<number[]> {
  const child = fork(new URL("handover-waiter.js", import.meta.url), [String(index), ...urls], { stdio: "inherit" });
  const samples: number[] = [];
  try {
    await once(child, "message"); // It is connected.
    for (let i = 0; i < handovers; i += 1) {
      const resource = `handover/${index}/${i}`;
      const giveBack = await here.take(resource);
      child.send({ resource } satisfies Ask);
      await sleep(holdMs * (1 + Math.random())); // Not in step with anybody's polling.
      const taken = once(child, "message") as Promise<[Told]>;
      const releasedAt = process.hrtime.bigint();
      await giveBack();
      const [{ takenAt }] = await taken;
      samples.push(Number(BigInt(takenAt) - releasedAt) / 1e6);
    }
  } finally {
    child.disconnect();
    await once(child, "exit");
  }
  return samples;
}

export async function handover(enter: readonly Enter<Waiter>[], urls: readonly string[]): Promise<void> {
  heading(
    "Handed over to another process",
    `from the call of release to the lock in the process that waits for it, ${handovers} times, each library's own way of waiting`,
  );
  const rows: string[][] = [];
  for (const [index, open] of enter.entries()) {
    const waiter = await open(urls);
    progress(waiter.name);
    const samples = await measure(waiter, index, urls);
    await waiter.close();
    rows.push([waiter.name, fixed(quantile(samples, 0.5), 2), fixed(quantile(samples, 0.95), 2), fixed(Math.max(...samples), 2)]);
  }
  progressEnded();
  console.log(table([{ title: "", align: "left" }, { title: "p50 ms" }, { title: "p95 ms" }, { title: "max ms" }], rows));
}

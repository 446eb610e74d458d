// How soon a released lock is held by another process, by the monotonic clock that both read.
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fixed, heading, progress, progressEnded, quantile, table } from "../report.js";
import type { Open, Waiter } from "./contestant.js";
import type { Acquired, AcquireRequest } from "./handover-waiter.js";

const HANDOVERS = 60;
/** Long enough for the other process to be refused and to wait. */
const HOLD_MS = 40;

/** Milliseconds from the call of release here to the lock in the other process. */
async function measure(here: Waiter, index: number, urls: readonly string[]): Promise<number[]> {
  const child = fork(new URL("handover-waiter.js", import.meta.url), [String(index), ...urls], { stdio: "inherit" });
  const samples: number[] = [];
  try {
    await once(child, "message"); // It is connected.
    for (let i = 0; i < HANDOVERS; i += 1) {
      const resource = `handover/${index}/${i}`;
      const release = await here.acquire(resource);
      child.send({ resource } satisfies AcquireRequest);
      await sleep(HOLD_MS * (1 + Math.random())); // Random, so that no library's polling falls in step with it.
      const acquired = once(child, "message") as Promise<[Acquired]>;
      const releasedAt = process.hrtime.bigint();
      await release();
      const [{ acquiredAt }] = await acquired;
      samples.push(Number(BigInt(acquiredAt) - releasedAt) / 1e6);
    }
  } finally {
    child.disconnect();
    await once(child, "exit");
  }
  return samples;
}

export async function handover(libraries: readonly Open<Waiter>[], urls: readonly string[]): Promise<void> {
  heading(
    "Handed over to another process",
    `from the call of release to the lock in the process that waits for it, ${HANDOVERS} times, each library's own way of waiting`,
  );
  const rows: string[][] = [];
  for (const [index, open] of libraries.entries()) {
    const waiter = await open(urls);
    progress(waiter.name);
    const samples = await measure(waiter, index, urls);
    await waiter.close();
    rows.push([waiter.name, fixed(quantile(samples, 0.5), 2), fixed(quantile(samples, 0.95), 2), fixed(Math.max(...samples), 2)]);
  }
  progressEnded();
  console.log(table([{ title: "", align: "left" }, { title: "p50 ms" }, { title: "p95 ms" }, { title: "max ms" }], rows));
}

// The other process of handover.ts: acquires each lock it is told, reports that, and releases it.
import { waiters } from "./peers.js";

export interface AcquireRequest {
  readonly resource: string;
}

export interface Acquired {
  /** On the machine's monotonic clock, in nanoseconds. */
  readonly acquiredAt: string;
}

const [index, ...urls] = process.argv.slice(2);
const open = waiters[Number(index)];
if (open === undefined || process.send === undefined) throw new Error("this program is started by the benchmark");
const waiter = await open(urls);
process.on("message", async ({ resource }: AcquireRequest) => {
  const release = await waiter.acquire(resource);
  const acquiredAt = process.hrtime.bigint().toString();
  await release();
  process.send?.({ acquiredAt } satisfies Acquired);
});
process.on("disconnect", () => void waiter.close());
process.send("connected");

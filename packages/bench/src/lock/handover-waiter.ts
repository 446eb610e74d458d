// The other process of handover.ts: waits for each lock it is told of, notes when it has it, and gives it back. A program of its own.
import { waiters } from "./waiters.js";

export interface Ask {
  readonly resource: string;
}

export interface Told {
  /** On the machine's monotonic clock, in nanoseconds. */
  readonly takenAt: string;
}

const [index, ...urls] = process.argv.slice(2);
const enter = waiters[Number(index)];
if (enter === undefined || process.send === undefined) throw new Error("this program is started by the benchmark");
const waiter = await enter(urls);
process.on("message", async ({ resource }: Ask) => {
  const giveBack = await waiter.take(resource);
  const takenAt = process.hrtime.bigint().toString();
  await giveBack();
  process.send?.({ takenAt } satisfies Told);
});
process.on("disconnect", () => void waiter.close());
process.send("connected");

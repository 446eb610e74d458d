// What tests run in a process or a thread of its own: one that waits for a lock, one that takes a lease
// and ends. Not a test.
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { createLocker, type Locker, type LockerOptions } from "@palisade/lock";

const { does, ...options } = (isMainThread ? JSON.parse(process.argv[2] ?? "") : workerData) as LockerOptions & { readonly does: string };
const locker: Locker = createLocker(options);
process.on("disconnect", () => process.exit());

if (does === "wait") process.send?.((await locker.acquire("r", { waitMs: 60_000 })).token);
else {
  const lease = await locker.acquire("r");
  parentPort?.postMessage(lease.token);
  await locker.close();
}

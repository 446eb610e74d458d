// A worker thread that takes a lease, tells its token to its parent, and ends. Not a test.
import { parentPort, workerData } from "node:worker_threads";
import { createLocker, type LockerOptions } from "@palisade/lock";

const locker = createLocker(workerData as LockerOptions);
const lease = await locker.acquire("r");
parentPort?.postMessage(lease.token);
await locker.close();

// What many held leases cost the process that holds them: memory for each, and the processor time
// of renewing them all. A program of its own, run with --expose-gc, so that nothing else is in its
// heap.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type Lease } from "@palisade/lock";
import { fixed, heading, table, whole } from "../report.js";

const LEASES = 10_000;
const TTL_MS = 10_000;
const WATCH_MS = 20_000;

function heapBytes(): number {
  if (globalThis.gc === undefined) throw new Error("this program needs --expose-gc");
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

async function main(urls: readonly string[]): Promise<void> {
  heading(
    `${whole(LEASES)} held leases`,
    `one process, ttl ${TTL_MS / 1000} s, renewed for ${WATCH_MS / 1000} s; the memory is the heap's growth, names of resources not counted`,
  );
  const locker = createLocker({ nodes: urls, ttlMs: TTL_MS });
  await locker.ready();
  // The first lease of a process loads code and fills pools that the others share.
  await (await locker.acquire("warm-up", { renew: true })).release();
  const names = Array.from({ length: LEASES }, (_, i) => `held/${i}`);
  const leases: Lease[] = new Array(LEASES);
  const before = heapBytes();
  await Promise.all(
    names.map(async (name, i) => {
      leases[i] = await locker.acquire(name, { renew: true });
    }),
  );
  await sleep(1_000);
  const bytesEach = (heapBytes() - before) / LEASES;
  const usedBefore = process.cpuUsage();
  const startedAt = performance.now();
  await sleep(WATCH_MS);
  const used = process.cpuUsage(usedBefore);
  const cores = (used.user + used.system) / 1000 / (performance.now() - startedAt);
  const lost = leases.filter((lease) => !lease.held);
  console.log(
    table(
      [{ title: "bytes per lease" }, { title: "% of a core" }, { title: "lost" }],
      [[whole(bytesEach), fixed(cores * 100, 1), String(lost.length)]],
    ),
  );
  for (const message of new Set(lost.map((lease) => String(lease.signal.reason).replace(/held\/\d+/g, "held/…")).slice(0, 5)))
    console.log(message);
  await locker.close();
  if (lost.length > 0) process.exitCode = 1;
}

await main(process.argv.slice(2));

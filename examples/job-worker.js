// node job-worker.js JOB adds up the numbers of a job under a lease of its own: one fenced write per
// step, so another worker can go on where this one stopped.
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";

const [job] = process.argv.slice(2);
if (job === undefined) throw new Error("usage: node job-worker.js JOB");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const client = createGatewayClient({
  url: process.env.GATEWAY_URL ?? "http://127.0.0.1:8080",
  apiKey: process.env.GATEWAY_KEY ?? "palisade-on-this-machine-only",
});
const locker = createLocker({ nodes });
const lease = await locker.acquire(`jobs/${job}`, { ttlMs: Number(process.env.TTL_MS ?? 10_000), renew: true });
console.log(`worker ${process.pid} has the lease with token ${lease.token}`);
try {
  await work(lease);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await lease.release();
  await locker.close();
}

/** @typedef {{ numbers: number[], done?: number, sum?: number }} Job @param {import("@palisade/lock").Lease} lease */
async function work({ resource }) {
  // The seal comes before the read: from here on no older holder can change the job.
  const sealed = await client.seal(resource, { lease });
  if (!sealed.ok) throw new Error(`not sealed: ${sealed.code}`);
  const { numbers, done = 0, sum = 0 } = /** @type {Job} */ (sealed.value);
  const job = { numbers, done, sum };
  while (job.done < numbers.length) {
    job.sum += numbers[job.done++] ?? 0;
    const stored = await client.put(resource, job, { lease, seq: job.done });
    if (!stored.ok) throw new Error(`step ${job.done} was not stored: ${stored.code}`);
    console.log(`step ${job.done} of ${numbers.length}`);
  }
}

// node bullmq.js works on the jobs { id } of the queue "reports": makes each report and stores it in a
// table of one's own. BullMQ gives a job whose worker stands still to another, so it may run twice.
import { setTimeout as sleep } from "node:timers/promises";
import { withFencedTransaction } from "@palisade/guard";
import { createLocker } from "@palisade/lock";
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes, ttlMs: Number(process.env.TTL_MS ?? 10_000), waitMs: 60_000 });
const db = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const connection = new Redis(process.env.QUEUE_URL ?? "redis://127.0.0.1:6379", { maxRetriesPerRequest: null });

/** @param {{ data: { id: number } }} job */
async function makeReport({ data: { id } }) {
  try {
    await locker.using(`reports/${id}`, async (lease) => {
      console.log(`report ${id} begins`);
      await sleep(Number(process.env.WORK_MS ?? 5_000)); // The work, which looks at lease.signal where it can end early.
      const upsert = "insert into reports values ($1, $2) on conflict (id) do update set text = excluded.text";
      await withFencedTransaction(db, lease, (tx) => tx.query(upsert, [id, `made by ${process.pid}`]));
    });
    console.log(`report ${id} is stored`);
  } catch (error) {
    console.log(`report ${id} is not stored: ${error}`);
    throw error;
  }
}

const stalledInterval = Number(process.env.STALLED_MS ?? 30_000);
const worker = new Worker("reports", makeReport, { connection, lockDuration: stalledInterval, stalledInterval });
worker.on("error", (error) => console.error(error.message));
process.once("SIGTERM", async () => {
  await worker.close();
  await Promise.all([connection.quit(), locker.close(), db.end()]);
});

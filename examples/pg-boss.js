// node pg-boss.js works on the jobs { id } of the queue "reports": makes each report and stores it in a
// table of one's own. pg-boss gives a job that takes longer than it may to another, so it may run twice.
import { setTimeout as sleep } from "node:timers/promises";
import { withFencedTransaction } from "@palisade/guard";
import { createLocker } from "@palisade/lock";
import pg from "pg";
import PgBoss from "pg-boss";

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes, ttlMs: Number(process.env.TTL_MS ?? 10_000), waitMs: 60_000 });
const connectionString = process.env.DATABASE_URL ?? "";
const db = new pg.Pool({ connectionString });
const boss = new PgBoss({ connectionString });

/** @param {{ data: { id: number } }[]} jobs one, where no batch is asked for */
async function makeReport([job]) {
  const id = job?.data.id;
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

boss.on("error", (error) => console.error(error.message));
await boss.start();
await boss.createQueue("reports");
await boss.work("reports", makeReport);
process.once("SIGTERM", async () => {
  await boss.stop();
  await Promise.all([locker.close(), db.end()]);
});

// node own-tables.js ACCOUNT AMOUNT takes an amount from an account: an update of a table of one's
// own, in a transaction of one's own, under a lease.
import { withFencedTransaction } from "@palisade/guard";
import { createLocker } from "@palisade/lock";
import pg from "pg";

const [account, amount = 0] = process.argv.slice(2).map(Number);
if (!Number.isSafeInteger(account) || !Number.isSafeInteger(amount) || amount < 1)
  throw new Error("usage: node own-tables.js ACCOUNT AMOUNT");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const connectionString = process.env.DATABASE_URL;
const pool = new pg.Pool({ connectionString });

try {
  await locker.using(`accounts/${account}`, async (lease) => {
    // The fence is raised before the first statement; the lease must still be held at COMMIT.
    await withFencedTransaction(pool, lease, async (tx) => {
      const { rowCount } = await tx.query("update accounts set balance = balance - $1 where id = $2 and balance >= $1", [amount, account]);
      if (rowCount === 0) throw new Error(`account ${account} does not have ${amount}`);
    });
  });
  console.log("done");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await locker.close();
  await pool.end();
}

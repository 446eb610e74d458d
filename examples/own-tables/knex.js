// node knex.js ACCOUNT AMOUNT takes an amount from an account: an update of a table of one's
// own, in a transaction of one's own, under a lease.
import { withFencedTransaction } from "@palisade/guard";
import { createLocker } from "@palisade/lock";
import Knex from "knex";

const [account, amount] = process.argv.slice(2).map(Number);
if (!Number.isSafeInteger(account) || !Number.isSafeInteger(amount) || amount < 1) throw new Error("usage: node knex.js ACCOUNT AMOUNT");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const connectionString = process.env.DATABASE_URL;
const knex = Knex({ client: "pg", connection: connectionString });

try {
  await locker.using(`accounts/${account}`, async (lease) => {
    // The fence is raised before the first statement; the lease must still be held at COMMIT.
    await withFencedTransaction(knex, lease, async (tx) => {
      const changed = await tx("accounts").where({ id: account }).andWhere("balance", ">=", amount).decrement("balance", amount);
      if (changed === 0) throw new Error(`account ${account} does not have ${amount}`);
    });
  });
  console.log("done");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await locker.close();
  await knex.destroy();
}

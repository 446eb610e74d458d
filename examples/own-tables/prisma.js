// node prisma.js ACCOUNT AMOUNT takes an amount from an account: an update of a table of one's
// own, in a transaction of one's own, under a lease.
import { withFencedTransaction } from "@palisade/guard";
import { createLocker } from "@palisade/lock";
import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "./generated/client.js";

const [account, amount] = process.argv.slice(2).map(Number);
if (!Number.isSafeInteger(account) || !Number.isSafeInteger(amount) || amount < 1) throw new Error("usage: node prisma.js ACCOUNT AMOUNT");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const connectionString = process.env.DATABASE_URL;
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) });

try {
  await locker.using(`accounts/${account}`, async (lease) => {
    // The fence is raised before the first statement; the lease must still be held at COMMIT.
    await withFencedTransaction(prisma, lease, async (tx) => {
      const changed =
        await tx.$executeRaw`update accounts set balance = balance - ${amount} where id = ${account} and balance >= ${amount}`;
      if (changed === 0) throw new Error(`account ${account} does not have ${amount}`);
    });
  });
  console.log("done");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await locker.close();
  await prisma.$disconnect();
}

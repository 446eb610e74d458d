// node transfer.js FROM TO AMOUNT moves an amount between two accounts: one lease for both, and one
// transaction.
import { createGatewayClient, withResource } from "@palisade/client";
import { createLocker } from "@palisade/lock";

const [from, to, text] = process.argv.slice(2);
const amount = Number(text);
if (!Number.isSafeInteger(amount) || amount < 1 || from === to) throw new Error("usage: node transfer.js FROM TO AMOUNT");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const client = createGatewayClient({
  url: process.env.GATEWAY_URL ?? "http://127.0.0.1:8080",
  apiKey: process.env.GATEWAY_KEY ?? "palisade-on-this-machine-only",
});

/**
 * @typedef {{ balance: number }} Account
 * @type {(accounts: readonly (Account | null)[]) => [Account, Account]}
 */
const move = ([source, target]) => {
  const balance = source?.balance ?? 0;
  if (balance < amount) throw new Error(`${from} has only ${balance}`); // Nothing is stored.
  return [{ balance: balance - amount }, { balance: (target?.balance ?? 0) + amount }];
};

try {
  const { value, token } = await withResource(locker, client, [`accounts/${from}`, `accounts/${to}`], move);
  console.log(`${from} has ${value?.[0]?.balance}, ${to} has ${value?.[1]?.balance}, under token ${token}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await locker.close();
}

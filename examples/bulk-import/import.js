// Reads lines "ITEM QUANTITY" and adds each quantity to the stock of its item: fifty at a time, each
// under a lease of its own.
import { createInterface } from "node:readline";
import { createGatewayClient, withResource } from "@palisade/client";
import { createLocker } from "@palisade/lock";

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const client = createGatewayClient({
  url: process.env.GATEWAY_URL ?? "http://127.0.0.1:8080",
  apiKey: process.env.GATEWAY_KEY ?? "palisade-on-this-machine-only",
});

async function importLine(line) {
  const [item, quantity] = line.split(" ");
  if (!/^\w+$/.test(item) || !/^\d{1,9}$/.test(quantity)) throw new Error('not "ITEM QUANTITY"');
  const add = (stock) => ({ quantity: (stock?.quantity ?? 0) + Number(quantity) });
  await withResource(locker, client, `stock/${item}`, add, { acquire: { waitMs: 60_000 } });
}

const startedAt = performance.now();
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const failures = [];
let imported = 0;

// All fifty loops take their lines from the same iterator.
async function importLines() {
  for await (const line of lines) {
    try {
      await importLine(line);
      imported++;
    } catch (error) {
      failures.push(`${line}: ${error.message}`);
    }
  }
}

await Promise.all(Array.from({ length: 50 }, importLines));
for (const failure of failures.slice(0, 10)) console.error(failure);
console.log(`${imported} imported, ${failures.length} failed, in ${Math.round(performance.now() - startedAt)} ms`);
process.exitCode = failures.length === 0 ? 0 : 1;
await locker.close();

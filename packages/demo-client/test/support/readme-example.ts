// The README's example, word for word below this line; readme.test.ts compares the two and runs it.
import { createGatewayClient, withResource } from "@palisade/client";
import { createLocker } from "@palisade/lock";

const nodes = [
  "redis://127.0.0.1:7001",
  "redis://127.0.0.1:7002",
  "redis://127.0.0.1:7003",
  "redis://127.0.0.1:7004",
  "redis://127.0.0.1:7005",
];
const locker = createLocker({ nodes });
const client = createGatewayClient({ url: "http://127.0.0.1:8080", apiKey: "palisade-on-this-machine-only" });

// Acquires, seals, reads, runs this, writes, releases. If another holder has come meanwhile,
// nothing is written.
const result = await withResource(locker, client, "accounts/7", async (account: { balance: number } | null) => {
  return { balance: (account?.balance ?? 0) + 10 };
});
console.log(result.value.balance, "stored as revision", result.rev, "under token", result.token);
await locker.close();

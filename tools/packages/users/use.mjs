// A user's program, ESM: a gateway of its own, a lease, a write, and a stale write that is refused.
import { createGatewayClient, withResource } from "@palisade/client";
import { createGateway } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";

const nodes = (process.env.REDIS_URLS ?? "").split(",");
const gateway = createGateway({
  databaseUrl: process.env.DATABASE_URL ?? "",
  redisUrls: nodes,
  apiKeys: "none",
  port: 0,
  adminPort: 0,
  logLevel: "silent",
});
await gateway.listen();
const locker = createLocker({ nodes });
const client = createGatewayClient({ url: gateway.url });
const name = `users/${process.pid}`;

const paused = await locker.acquire(name);
await paused.release();
const { value } = await withResource(locker, client, name, (document) => ({ n: (document?.n ?? 0) + 1 }));
const late = await client.put(name, { n: 666 }, { token: paused.token });
await locker.close();
await gateway.close();
if (value.n !== 1 || late.ok || late.code !== "fencing_token_stale") throw new Error(`it came to ${JSON.stringify({ value, late })}`);
console.log(`node ${process.versions.node} import: ${late.code}`);

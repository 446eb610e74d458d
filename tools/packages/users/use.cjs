// The same in CommonJS, by Node's own require of ESM.
const { createGatewayClient } = require("@palisade/client");
const { createGateway } = require("@palisade/gateway");
const { createLocker } = require("@palisade/lock");

(async () => {
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
  const older = await locker.acquire(name);
  await older.release();
  const newer = await locker.acquire(name);
  const stored = await client.put(name, { n: 1 }, { lease: newer });
  const late = await client.put(name, { n: 666 }, { token: older.token });
  await newer.release();
  await locker.close();
  await gateway.close();
  if (!stored.ok || late.ok || late.code !== "fencing_token_stale") throw new Error(`it came to ${JSON.stringify({ stored, late })}`);
  console.log(`require: ${late.code}`);
})();

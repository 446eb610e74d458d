// A user's program with a gateway in it, bundled into one file: it brings the schema of the
// database up to date, stores under a lease, and serves the operator's page.
import { createGatewayClient } from "@palisade/client";
import { createGateway } from "@palisade/gateway";
import { guard } from "@palisade/guard";
import { createLocker } from "@palisade/lock";
import pg from "pg";

async function run() {
  const nodes = (process.env.REDIS_URLS ?? "").split(",");
  const databaseUrl = process.env.DATABASE_URL ?? "";
  const gateway = createGateway({ databaseUrl, redisUrls: nodes, apiKeys: "none", port: 0, adminPort: 0, page: "on", logLevel: "silent" });
  await gateway.listen();
  const locker = createLocker({ nodes });
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  const name = `bundles/${process.pid}`;
  const stored = await locker.using(name, (lease) => createGatewayClient({ url: gateway.url }).put(name, { n: 1 }, { lease }));
  await db.query("begin");
  const late = await guard(db, { resource: name, token: stored.token - 1 }).catch((error) => error);
  await db.end();
  const page = await (await fetch(`${gateway.adminUrl}/page/app.js`)).text();
  await locker.close();
  await gateway.close();
  if (page.length < 10_000) throw new Error("the operator's page is not in the bundle");
  if (!stored.ok || late?.code !== "fencing_token_stale") throw new Error(`it came to ${JSON.stringify({ stored, late })}`);
  console.log(`bundled: revision ${stored.rev}, and ${late.code}`);
}
run();

// Two cells: the stack of this run, and another with a namespace, a database and a gateway of its
// own. A resource moves from one to the other; its stale writer is refused in both.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { createGatewayClient } from "@palisade/client";
import pg from "pg";
import { client, locker, pausedLease, refusesStale, run, until } from "./run-example.mjs";

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
await database.connect();
await database.query("create database cell_b encoding 'UTF8' template template0");
const databaseUrl = new URL(process.env.DATABASE_URL);
databaseUrl.pathname = "/cell_b";
const [port, adminPort] = [await freePort(), await freePort()];
const program = join(dirname(createRequire(import.meta.url).resolve("@palisade/gateway/package.json")), "dist", "main.js");
const env = { DATABASE_URL: databaseUrl.href, PORT: port, ADMIN_PORT: adminPort, PALISADE_NAMESPACE: "cell-b" };
const common = { PALISADE_REDIS_URLS: process.env.REDIS_URLS, PALISADE_LOG_LEVEL: "error" };
const gateway = spawn(process.execPath, [program], { env: { ...process.env, ...common, ...env }, stdio: "inherit" });
try {
  const ready = () =>
    fetch(`http://127.0.0.1:${adminPort}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(ready);
  const nodes = process.env.REDIS_URLS.split(",");
  const b = { nodes, url: `http://127.0.0.1:${port}`, namespace: "cell-b" };
  const CELLS = JSON.stringify({ a: { nodes, url: process.env.GATEWAY_URL }, b });
  const cells = (...args) => run("cells", ["cells.js", ...args], { env: { CELLS } });

  assert.equal(await cells("set", "acme/orders/1", '{"n":1}'), "stored in a\n");
  const paused = await pausedLease("acme/orders/1");
  assert.match(await cells("move", "acme/orders/1", "b"), /\nmoved\n$/);
  assert.equal(await cells("get", "acme/orders/1"), '{"n":1} in b\n');
  await refusesStale("acme/orders/1", paused.token);
  const inB = createGatewayClient({ url: b.url });
  assert.equal((await inB.put("acme/orders/1", 0, { token: paused.token })).code, "fencing_token_stale");
  assert.equal(await cells("set", "acme/orders/1", '{"n":2}'), "stored in b\n");
  assert.deepEqual((await client.get("acme/orders/1")).value, { n: 1 });
} finally {
  gateway.kill("SIGTERM");
  await new Promise((resolve) => gateway.once("exit", resolve));
  await database.end();
  await locker.close();
}
console.log("a resource moves to another cell; its stale writer is refused in both");

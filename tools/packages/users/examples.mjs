// The check of each example, by its name: on the servers of this run the example does what the README
// says, and a stale write is refused. A program of its own.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { Queue } from "bullmq";
import pg from "pg";
import PgBoss from "pg-boss";

const locker = createLocker({ nodes: process.env.REDIS_URLS.split(",") });
const client = createGatewayClient({ url: process.env.GATEWAY_URL });
const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
await database.connect();
await database.query("create table reports (id integer primary key, text text not null)");
await database.query("select palisade.fence_table('reports', 'reports/', 'id')");

const folder = fileURLToPath(new URL("examples/", import.meta.url));

/** A command in the folder of the examples; without `program` it is this Node. */
function start(args, { env = {}, program = process.execPath, input = "" } = {}) {
  const child = spawn(program, args, { cwd: folder, env: { ...process.env, ...env } });
  child.stdin.end(input);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject).once("close", (code) => resolve({ code, output }));
  });
  return { child, ended, line: async () => (await lines.next()).value };
}

/** What it printed, of a program that must succeed. */
async function run(args, options) {
  const { code, output } = await start(args, options).ended;
  assert.equal(code, 0, `${args.join(" ")} ended with ${code}:\n${output}`);
  return output;
}

/** A lease that is neither renewed nor released, as of a process that was paused. */
function pausedLease(resources) {
  return locker.acquire(resources, { ttlMs: 300 });
}

/** A write with this token changes nothing. */
async function refusesStale(resource, token) {
  const before = await client.get(resource);
  const late = await client.put(resource, { by: "a stale holder" }, { token });
  assert.equal(late.code, "fencing_token_stale", `a stale write of ${resource} came to ${JSON.stringify(late)}`);
  const after = await client.get(resource);
  assert.deepEqual([after.rev, after.value], [before.rev, before.value]);
}

/** Asks again until the answer is true. */
async function until(condition) {
  for (const endsAt = performance.now() + 30_000; !(await condition()); ) {
    assert.ok(performance.now() < endsAt, `not within 30 seconds: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

// Deposits at the same time all count, and a holder that was paused before them is refused.
async function accounts() {
  const server = start(["accounts.js"], { env: { PORT: "0" } });
  const origin = await server.line();
  const url = `${origin}/accounts/7`;
  const name = "accounts/7";
  const post = (path, body) =>
    fetch(origin + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const deposit = (amount) => post("/accounts/7/deposits", { amount });

  assert.equal((await fetch(url)).status, 404);
  const paused = await pausedLease(name);
  const answers = await Promise.all(Array.from({ length: 20 }, () => deposit(5)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
  assert.deepEqual(await (await fetch(url)).json(), { balance: 100 });
  assert.equal((await deposit(0)).status, 400);
  await refusesStale(name, paused.token);
  assert.equal((await client.get(name)).value.balance, 100);

  // Transfers in both directions at the same time: nothing is gained or lost, and a stale write of either is refused.
  const transfer = async (from, to, amount) => (await post("/transfers", { from, to, amount })).status;
  const both = await pausedLease([name, "accounts/8"]);
  const ways = [transfer("7", "8", 40), transfer("8", "7", 10), transfer("7", "8", 20)];
  assert.deepEqual(
    (await Promise.all(ways)).filter((status) => status !== 201 && status !== 400),
    [],
  ); // 400: 8 had nothing yet.
  const balances = async () => (await Promise.all([name, "accounts/8"].map((one) => client.get(one)))).map(({ value }) => value.balance);
  const [seven, eight] = await balances();
  assert.equal(seven + eight, 100);
  assert.equal(await transfer("7", "8", seven + 1), 400);
  for (const one of [name, "accounts/8"]) await refusesStale(one, both.token);
  assert.deepEqual(await balances(), [seven, eight]);

  server.child.kill("SIGTERM");
  assert.equal((await server.ended).code, 0);
  return "20 deposits at once make 100, transfers lose nothing; stale writes are refused";
}

// Two cells: the stack of this run, and another with a namespace, a database and a gateway of its
// own. A resource moves from one to the other; its stale writer is refused in both.
async function cells() {
  const freePort = () =>
    new Promise((resolve) => {
      const server = createServer().listen(0, "127.0.0.1", () => {
        const { port } = server.address();
        server.close(() => resolve(port));
      });
    });

  await database.query("create database cell_b encoding 'UTF8' template template0");
  const databaseUrl = new URL(process.env.DATABASE_URL);
  databaseUrl.pathname = "/cell_b";
  const [port, adminPort] = [await freePort(), await freePort()];
  const program = join(dirname(createRequire(import.meta.url).resolve("@palisade/gateway/package.json")), "dist", "main.js");
  const env = { DATABASE_URL: databaseUrl.href, PORT: port, ADMIN_PORT: adminPort, PALISADE_NAMESPACE: "cell-b" };
  const common = { PALISADE_REDIS_URLS: process.env.REDIS_URLS, PALISADE_API_KEYS: "none", PALISADE_LOG_LEVEL: "error" };
  const gateway = spawn(process.execPath, [program], { env: { ...process.env, ...common, ...env }, stdio: "inherit" });
  const ended = new Promise((resolve) => gateway.once("exit", resolve)); // It may have ended before it is told to.
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
    const cells = (...args) => run(["cells/cells.js", ...args], { env: { CELLS } });

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
    await ended;
  }
  return "a resource moves to another cell; its stale writer is refused in both";
}

// Five machines at the same minute: one runs the command. A machine that was paused while it ran
// it does not overwrite what the next one stored.
async function cronOnce() {
  const once = (day, program, env) => start(["cron-once.js", "report", day, process.execPath, "-e", program], { env });

  const five = await Promise.all(Array.from({ length: 5 }, () => once("monday", "console.log(6 * 7)").ended));
  assert.deepEqual([...new Set(five.map(({ code }) => code))], [0]);
  assert.equal(five.filter(({ output }) => output === "done\n").length, 1);
  assert.match(await run(["cron-once.js", "report", "monday", process.execPath, "-e", ""]), /^done already/);
  assert.equal((await client.get("jobs/report/monday")).value.output, "42\n");

  const at = (file) => join(folder, file);
  for (const file of ["started", "go"]) rmSync(at(file), { force: true });
  const untilTold = `
    require("fs").writeFileSync("started", "");
    const timer = setInterval(() => require("fs").existsSync("go") && (clearInterval(timer), console.log("paused")), 20);`;
  const first = once("tuesday", untilTold, { TTL_MS: "1000" });
  await until(() => existsSync(at("started")));
  first.child.kill("SIGSTOP");
  const { token } = await client.fence("jobs/report/tuesday");
  await until(async () => (await once("tuesday", "console.log('second')").ended).output === "done\n");
  writeFileSync(at("go"), "");
  first.child.kill("SIGCONT");
  const { code, output } = await first.ended;
  assert.equal(code, 1, output);
  assert.match(output, /^not stored/m);
  await refusesStale("jobs/report/tuesday", token);
  assert.equal((await client.get("jobs/report/tuesday")).value.output, "second\n");
  return "one of five ran it; a paused run is not stored";
}

// A job of a queue is begun by one worker, which is stopped, and given to another, which stores the
// report. The first wakes up: it stores nothing, and the token that it had is refused by the table.
async function twice({ program, id, give, env = {} }) {
  const resource = `reports/${id}`;
  const worker = (workMs) => start([program], { env: { ...env, TTL_MS: "1000", WORK_MS: workMs } });
  const first = worker("3000");
  await give();
  assert.equal(await first.line(), `report ${id} begins`);
  first.child.kill("SIGSTOP");
  const { token } = await locker.inspect(resource);
  const second = worker("0");
  assert.equal(await second.line(), `report ${id} begins`);
  assert.equal(await second.line(), `report ${id} is stored`);
  first.child.kill("SIGCONT");
  assert.match(await first.line(), new RegExp(`^report ${id} is not stored: FencedTransactionError: the lease of ${resource} .* is over`));
  for (const { child } of [first, second]) child.kill("SIGTERM");
  await Promise.all([first.ended, second.ended]);
  const late = `begin; select palisade.guard('${resource}', ${token}); update reports set text = 'late' where id = ${id}; commit`;
  await assert.rejects(database.query(late), { code: "PLS01" });
  await database.query("rollback");
  const { rows } = await database.query(`select text from reports where id = ${id}`);
  assert.deepEqual(rows, [{ text: `made by ${second.child.pid}` }]);
}

async function bullmq() {
  const env = { QUEUE_URL: process.env.REDIS_URLS.split(",")[0], STALLED_MS: "1000" };
  const queue = new Queue("reports", { connection: { url: env.QUEUE_URL } });
  await twice({ program: "bullmq.js", id: 1, give: () => queue.add("report", { id: 1 }), env });
  await queue.close();
  return "a stalled job runs twice; the first run stores nothing";
}

async function pgBoss() {
  // It looks for expired jobs every second.
  const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, maintenanceIntervalSeconds: 1 });
  boss.on("error", (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue("reports");
  await twice({ program: "pg-boss.js", id: 2, give: () => boss.send("reports", { id: 2 }, { expireInSeconds: 2, retryLimit: 2 }) });
  await boss.stop();
  return "an expired job runs twice; the first run stores nothing";
}

// Each program under a lease, and then with the token of an older one. A language whose
// interpreter is not on this machine is named.
async function otherLanguages() {
  const isThere = (program, args) => spawnSync(program, args).status === 0;
  const said = [];

  async function adds(language, command) {
    const resource = `stock/${language}`;
    for (const rev of [1, 2])
      assert.match(await run(["with-lease.js", resource, ...command, "5"]), new RegExp(`stored as revision ${rev}`));
    assert.deepEqual((await client.get(resource)).value, { quantity: 10 });
    const { token } = await client.fence(resource);
    await locker.using(resource, (lease) => client.seal(resource, { lease }));
    const [program, ...args] = command;
    const env = { RESOURCE: resource, FENCING_TOKEN: String(token) };
    const late = await start([...args, "5"], { program, env }).ended;
    assert.notEqual(late.code, 0);
    assert.match(late.output, /412 fencing_token_stale/);
    assert.deepEqual((await client.get(resource)).value, { quantity: 10 });
    said.push(`${language} adds, and is refused when stale`);
  }

  async function withdraws() {
    await database.query("create table accounts (id integer primary key, balance integer not null)");
    await database.query("select palisade.fence_table('accounts', 'accounts/', 'id')");
    await locker.using("accounts/2000", async ({ token }) => {
      await database.query(`begin; select palisade.guard('accounts/2000', ${token}); insert into accounts values (2000, 100); commit`);
    });
    const command = 'psql "$DATABASE_URL" -v resource="$RESOURCE" -v token="$FENCING_TOKEN" -v id=2000 -v amount=10 -f withdraw.sql';
    await run(["with-lease.js", "accounts/2000", "sh", "-c", command]);
    const { token } = await client.fence("accounts/2000");
    await locker.using("accounts/2000", (lease) => client.seal("accounts/2000", { lease }));
    const env = { RESOURCE: "accounts/2000", FENCING_TOKEN: String(token) };
    const late = await start(["-c", command], { program: "sh", env }).ended;
    assert.notEqual(late.code, 0);
    assert.match(late.output, /is stale|fence/);
    const { rows } = await database.query("select balance from accounts where id = 2000");
    await assert.rejects(database.query("update accounts set balance = 0"), { code: "PLS03" });
    assert.deepEqual(rows, [{ balance: 90 }]);
    said.push("SQL withdraws, and is refused when stale");
  }

  if (isThere("python3", ["--version"])) await adds("python", ["python3", "add.py"]);
  else said.push("python3 is not here");
  if (isThere("go", ["version"])) await adds("go", ["go", "run", "add.go"]);
  else said.push("go is not here");
  if (isThere("psql", ["--version"])) await withdraws();
  else said.push("psql is not here");
  return said.join("; ");
}

const checks = {
  accounts,
  bullmq,
  "pg-boss": pgBoss,
  "cron-once": cronOnce,
  "other-languages": otherLanguages,
  cells,
};

for (const [name, check] of Object.entries(checks)) console.log(`  ${name.padEnd(20)} ${await check()}`);
await Promise.all([locker.close(), database.end()]);

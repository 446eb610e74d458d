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
import pg from "pg";

const locker = createLocker({ nodes: process.env.REDIS_URLS.split(",") });
const client = createGatewayClient({ url: process.env.GATEWAY_URL });

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
  const url = `${await server.line()}/accounts/7`;
  const name = "accounts/7";
  const deposit = (amount) =>
    fetch(`${url}/deposits`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ amount }) });

  assert.equal((await fetch(url)).status, 404);
  const paused = await pausedLease(name);
  const answers = await Promise.all(Array.from({ length: 20 }, () => deposit(5)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
  assert.deepEqual(await (await fetch(url)).json(), { balance: 100 });
  assert.equal((await deposit(0)).status, 400);
  await refusesStale(name, paused.token);
  assert.equal((await client.get(name)).value.balance, 100);

  server.child.kill("SIGTERM");
  assert.equal((await server.ended).code, 0);
  return "20 deposits at once make 100; a stale write is refused";
}

// A withdrawal under a lease; then a transaction of an older holder is refused, and so is one without any.
async function ownTables() {
  const id = 1_000;
  const resource = `accounts/${id}`;
  const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await database.connect();
  await database.query("create table if not exists accounts (id integer primary key, balance integer not null)");
  await database.query("select palisade.fence_table('accounts', 'accounts/', 'id')");
  const under = (token, statement) => database.query(`begin; select palisade.guard('${resource}', ${token}); ${statement}; commit`);
  await locker.using(resource, ({ token }) => under(token, `insert into accounts values (${id}, 100)`));

  const paused = await pausedLease(resource);
  assert.equal(await run(["own-tables.js", String(id), "30"]), "done\n");
  const overdrawn = await start(["own-tables.js", String(id), "71"]).ended;
  assert.deepEqual([overdrawn.code, overdrawn.output], [1, `account ${id} does not have 71\n`]);

  const update = `update accounts set balance = 0 where id = ${id}`;
  await assert.rejects(under(paused.token, update), { code: "PLS01" });
  await database.query("rollback");
  await assert.rejects(database.query(update), { code: "PLS03" });
  const { rows } = await database.query(`select balance from accounts where id = ${id}`);
  assert.deepEqual(rows, [{ balance: 70 }]);
  await database.end();
  return "a withdrawal under a lease; older holders get PLS01, writers without a guard PLS03";
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

  const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await database.connect();
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
    await database.end();
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

// A worker finishes a job under its own lease. One that is paused in the middle is refused when it
// wakes up.
async function jobWorker() {
  const put = (name, job) => locker.using(name, (lease) => client.put(name, job, { lease }));
  const numbers = Array.from({ length: 1_000 }, (_, index) => index);

  await put("jobs/short", { numbers: [1, 2, 3, 4] });
  await run(["job-worker.js", "short"]);
  assert.deepEqual((await client.get("jobs/short")).value, { numbers: [1, 2, 3, 4], done: 4, sum: 10 });

  await put("jobs/long", { numbers });
  // The worker has to start within the lease, also on a busy machine.
  const worker = start(["job-worker.js", "long"], { env: { TTL_MS: "6000" } });
  const [, pid, token] = /^worker (\d+) has the lease with token (\d+)$/.exec(await worker.line());
  assert.match((await worker.line()) ?? (await worker.ended).output, /^step 1 of 1000$/);
  process.kill(Number(pid), "SIGSTOP");
  try {
    const newer = await locker.acquire("jobs/long", { waitMs: 30_000 });
    const sealed = await client.seal("jobs/long", { lease: newer });
    assert.ok(sealed.value.done >= 1 && sealed.value.done < numbers.length, JSON.stringify(sealed.value.done));
    const stored = await client.put("jobs/long", { ...sealed.value, by: "the newer worker" }, { lease: newer });
    assert.ok(stored.ok, JSON.stringify(stored));
    await newer.release();
  } finally {
    process.kill(Number(pid), "SIGCONT");
  }
  const { code, output } = await worker.ended;
  assert.equal(code, 1, output);
  assert.match(output, /was not stored: (lease_lost|fencing_token_stale)/);
  await refusesStale("jobs/long", Number(token));
  assert.equal((await client.get("jobs/long")).value.by, "the newer worker");
  return "the worker finishes the job; a paused one is refused";
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
    const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
    await database.connect();
    await database.query("create table if not exists accounts (id integer primary key, balance integer not null)");
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
    assert.deepEqual(rows, [{ balance: 90 }]);
    await database.end();
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

// Transfers in both directions at the same time: nothing is gained or lost.
async function transfer() {
  const names = ["accounts/alice", "accounts/bob"];
  const balances = async () => (await Promise.all(names.map((name) => client.get(name)))).map(({ value }) => value.balance);
  for (const name of names) await locker.using(name, (lease) => client.put(name, { balance: 100 }, { lease }));

  const paused = await pausedLease(names);
  const ways = [
    ["alice", "bob", "30"],
    ["bob", "alice", "10"],
  ];
  await Promise.all([...ways, ...ways].map((way) => run(["transfer.js", ...way])));
  assert.deepEqual(await balances(), [60, 140]);
  const overdrawn = await start(["transfer.js", "alice", "bob", "61"]).ended;
  assert.deepEqual([overdrawn.code, overdrawn.output], [1, "alice has only 60\n"]);
  for (const name of names) await refusesStale(name, paused.token);
  assert.deepEqual(await balances(), [60, 140]);
  return "four transfers at once lose nothing; a stale write of either account is refused";
}

const checks = {
  accounts,
  cells,
  "cron-once": cronOnce,
  "job-worker": jobWorker,
  "other-languages": otherLanguages,
  "own-tables": ownTables,
  transfer,
};

for (const [name, check] of Object.entries(checks)) console.log(`  ${name.padEnd(20)} ${await check()}`);
await locker.close();

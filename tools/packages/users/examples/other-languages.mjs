// Each program under a lease, and then with the token of an older one. A language whose
// interpreter is not on this machine is named.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import pg from "pg";
import { client, locker, run, start } from "./run-example.mjs";

const example = "other-languages";
const isThere = (program, args) => spawnSync(program, args).status === 0;
const said = [];

async function adds(language, command) {
  const resource = `stock/${language}`;
  for (const rev of [1, 2])
    assert.match(await run(example, ["with-lease.js", resource, ...command, "5"]), new RegExp(`stored as revision ${rev}`));
  assert.deepEqual((await client.get(resource)).value, { quantity: 10 });
  const { token } = await client.fence(resource);
  await locker.using(resource, (lease) => client.seal(resource, { lease }));
  const [program, ...args] = command;
  const env = { RESOURCE: resource, FENCING_TOKEN: String(token) };
  const late = await start(example, [...args, "5"], { program, env }).ended;
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
  await run(example, ["with-lease.js", "accounts/2000", "sh", "-c", command]);
  const { token } = await client.fence("accounts/2000");
  await locker.using("accounts/2000", (lease) => client.seal("accounts/2000", { lease }));
  const env = { RESOURCE: "accounts/2000", FENCING_TOKEN: String(token) };
  const late = await start(example, ["-c", command], { program: "sh", env }).ended;
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
await locker.close();
console.log(said.join("; "));

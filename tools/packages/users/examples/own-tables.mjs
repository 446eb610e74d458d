// The four libraries: a withdrawal under a lease; then a transaction of an older holder is refused,
// and so is one without any.
import assert from "node:assert/strict";
import pg from "pg";
import { locker, pausedLease, run, start } from "./run-example.mjs";

const [example] = process.argv.slice(2);
const id = 1_000 + ["pg", "drizzle", "knex", "prisma"].indexOf(example.replace("own-tables-", ""));
const resource = `accounts/${id}`;
const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
await database.connect();
await database.query("create table if not exists accounts (id integer primary key, balance integer not null)");
await database.query("select palisade.fence_table('accounts', 'accounts/', 'id')");
const under = (token, statement) => database.query(`begin; select palisade.guard('${resource}', ${token}); ${statement}; commit`);
await locker.using(resource, ({ token }) => under(token, `insert into accounts values (${id}, 100)`));

// Prisma's generator reads the schema only, but would first download an engine that it does
// not run.
const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
if (example === "own-tables-prisma") await run(example, ["run", "generate"], { program: "npm", env });
const paused = await pausedLease(resource);
assert.equal(await run(example, ["withdraw.js", String(id), "30"]), "done\n");
const overdrawn = await start(example, ["withdraw.js", String(id), "71"]).ended;
assert.deepEqual([overdrawn.code, overdrawn.output], [1, `account ${id} does not have 71\n`]);

const update = `update accounts set balance = 0 where id = ${id}`;
await assert.rejects(under(paused.token, update), { code: "PLS01" });
await database.query("rollback");
await assert.rejects(database.query(update), { code: "PLS03" });
const { rows } = await database.query(`select balance from accounts where id = ${id}`);
assert.deepEqual(rows, [{ balance: 70 }]);
await database.end();
await locker.close();
console.log("a withdrawal under a lease; older holders get PLS01, writers without a guard PLS03");

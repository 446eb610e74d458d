// The two services: deposits at the same time all count, and a holder that was paused before them
// is refused.
import assert from "node:assert/strict";
import { client, locker, pausedLease, refusesStale, start } from "./run-example.mjs";

const [example] = process.argv.slice(2);
const server = start(example, ["server.js"], { env: { PORT: "0" } });
const url = `${await server.line()}/accounts/${example.split("-")[0]}`;
const name = `accounts/${example.split("-")[0]}`;
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
await locker.close();
console.log("20 deposits at once make 100; a stale write is refused");

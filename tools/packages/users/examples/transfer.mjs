// Transfers in both directions at the same time: nothing is gained or lost.
import assert from "node:assert/strict";
import { client, locker, pausedLease, refusesStale, run, start } from "./run-example.mjs";

const names = ["accounts/alice", "accounts/bob"];
const balances = async () => (await Promise.all(names.map((name) => client.get(name)))).map(({ value }) => value.balance);
for (const name of names) await locker.using(name, (lease) => client.put(name, { balance: 100 }, { lease }));

const paused = await pausedLease(names);
const ways = [
  ["alice", "bob", "30"],
  ["bob", "alice", "10"],
];
await Promise.all([...ways, ...ways].map((way) => run("transfer", ["transfer.js", ...way])));
assert.deepEqual(await balances(), [60, 140]);
const overdrawn = await start("transfer", ["transfer.js", "alice", "bob", "61"]).ended;
assert.deepEqual([overdrawn.code, overdrawn.output], [1, "alice has only 60\n"]);
for (const name of names) await refusesStale(name, paused.token);
assert.deepEqual(await balances(), [60, 140]);
await locker.close();
console.log("four transfers at once lose nothing; a stale write of either account is refused");

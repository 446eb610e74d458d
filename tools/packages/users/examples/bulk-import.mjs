// Two imports of the same 500 items at the same time: each quantity counts once.
import assert from "node:assert/strict";
import { client, locker, pausedLease, refusesStale, run } from "./run-example.mjs";

const input = Array.from({ length: 500 }, (_, index) => `item${index} 10\n`).join("");
const paused = await pausedLease("stock/item250");
const outputs = await Promise.all([1, 2].map(() => run("bulk-import", ["import.js"], { input })));
for (const output of outputs) assert.match(output, /^500 imported, 0 failed/m);
const found = await Promise.all(Array.from({ length: 500 }, (_, index) => client.get(`stock/item${index}`)));
assert.deepEqual([...new Set(found.map(({ value }) => value.quantity))], [20]);
await refusesStale("stock/item250", paused.token);
await locker.close();
console.log(`twice ${outputs.map((output) => output.trim()).join(" and ")}; a stale write is refused`);

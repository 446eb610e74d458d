// A worker finishes a job under its own lease. One that is paused in the middle is refused when it
// wakes up.
import assert from "node:assert/strict";
import { client, locker, refusesStale, run, start } from "./run-example.mjs";

const example = "job-worker";
const put = (name, job) => locker.using(name, (lease) => client.put(name, job, { lease }));
const numbers = Array.from({ length: 1_000 }, (_, index) => index);

await put("jobs/short", { numbers: [1, 2, 3, 4] });
await run(example, ["worker.js", "short"]);
assert.deepEqual((await client.get("jobs/short")).value, { numbers: [1, 2, 3, 4], done: 4, sum: 10 });

await put("jobs/long", { numbers });
// The worker has to start within the lease, also on a busy machine.
const worker = start(example, ["worker.js", "long"], { env: { TTL_MS: "6000" } });
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
await locker.close();
console.log("the worker finishes the job; a paused one is refused");

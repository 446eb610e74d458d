// What the checks of the examples share: the servers of this run, an example as a process, and the
// proof that a stale write is refused.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";

export const locker = createLocker({ nodes: process.env.REDIS_URLS.split(",") });
export const client = createGatewayClient({ url: process.env.GATEWAY_URL });

/** The folder of an example. */
export function folderOf(example) {
  return fileURLToPath(new URL(`../examples/${example}/`, import.meta.url));
}

/** A command in the folder of an example; without `program` it is this Node. */
export function start(example, args, { env = {}, program = process.execPath, input = "" } = {}) {
  const child = spawn(program, args, { cwd: folderOf(example), env: { ...process.env, ...env } });
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
export async function run(example, args, options) {
  const { code, output } = await start(example, args, options).ended;
  assert.equal(code, 0, `${example} ${args.join(" ")} ended with ${code}:\n${output}`);
  return output;
}

/** A lease that is neither renewed nor released, as of a process that was paused. */
export function pausedLease(resources) {
  return locker.acquire(resources, { ttlMs: 300 });
}

/** A write with this token changes nothing. */
export async function refusesStale(resource, token) {
  const before = await client.get(resource);
  const late = await client.put(resource, { by: "a stale holder" }, { token });
  assert.equal(late.code, "fencing_token_stale", `a stale write of ${resource} came to ${JSON.stringify(late)}`);
  const after = await client.get(resource);
  assert.deepEqual([after.rev, after.value], [before.rev, before.value]);
}

/** Asks again until the answer is true. */
export async function until(condition) {
  for (const endsAt = performance.now() + 30_000; !(await condition()); ) {
    assert.ok(performance.now() < endsAt, `not within 30 seconds: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

// node cron-once.js JOB DAY COMMAND [ARGUMENT…] runs the command on one machine of a fleet, once for
// that day, and stores what it printed.
import { execFile } from "node:child_process";
import { hostname } from "node:os";
import { promisify } from "node:util";
import { createGatewayClient, GatewayError, withResource } from "@palisade/client";
import { createLocker, LockError } from "@palisade/lock";

const [job, day, command = "", ...args] = process.argv.slice(2);
if (command === "") throw new Error("usage: node cron-once.js JOB DAY COMMAND [ARGUMENT…]");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const client = createGatewayClient({
  url: process.env.GATEWAY_URL ?? "http://127.0.0.1:8080",
  apiKey: process.env.GATEWAY_KEY ?? "palisade-on-this-machine-only",
});
const acquire = { waitMs: 0, ttlMs: Number(process.env.TTL_MS ?? 10_000) };

/** @type {(done: object | null, work: { signal: AbortSignal }) => Promise<object | undefined>} */
async function run(done, { signal }) {
  if (done !== null) return undefined; // Nothing is stored.
  const { stdout } = await promisify(execFile)(command, args, { signal }); // Ended when the lease is lost.
  return { by: `${hostname()}:${process.pid}`, at: new Date().toISOString(), output: stdout };
}

try {
  const { value } = await withResource(locker, client, `jobs/${job}/${day}`, run, { acquire });
  console.log(value === undefined ? "done already" : "done");
} catch (error) {
  if (error instanceof LockError && error.code === "LOCK_HELD") console.log("another machine has it");
  else {
    process.exitCode = 1;
    console.error(error instanceof GatewayError ? `not stored: ${error.message}` : error);
  }
} finally {
  await locker.close();
}

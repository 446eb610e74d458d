// node with-lease.js RESOURCE COMMAND [ARGUMENT…] runs a command of any language under a lease, and
// tells it the resource and the token in its environment.
import { spawn } from "node:child_process";
import { createLocker } from "@palisade/lock";

const [resource = "", command, ...args] = process.argv.slice(2);
if (command === undefined) throw new Error("usage: node with-lease.js RESOURCE COMMAND [ARGUMENT…]");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
try {
  process.exitCode = await locker.using(resource, async ({ token, signal }) => {
    const env = { ...process.env, RESOURCE: resource, FENCING_TOKEN: String(token) };
    const child = spawn(command, args, { stdio: "inherit", env, signal }); // Ended when the lease is lost.
    return await new Promise((resolve, reject) => child.once("error", reject).once("exit", (code) => resolve(code ?? 1)));
  });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await locker.close();
}

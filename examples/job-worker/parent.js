// node parent.js JOB takes the lease of a job, hands it to a worker process, and waits for it.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createLocker } from "@palisade/lock";

const [job] = process.argv.slice(2);
if (job === undefined) throw new Error("usage: node parent.js JOB");

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const lease = await locker.acquire(`jobs/${job}`, { ttlMs: Number(process.env.TTL_MS ?? 10_000) });

const worker = spawn(process.execPath, [fileURLToPath(new URL("worker.js", import.meta.url))], {
  stdio: ["pipe", "inherit", "inherit"],
});
// Not on the command line, where every user of the machine could read it: the text is a secret.
worker.stdin.end(lease.serialize());
console.log(`worker ${worker.pid} has the lease with token ${lease.token}`);
worker.once("exit", (code) => {
  process.exitCode = code ?? 1;
});
// A serialized lease stays held when its first locker closes.
await locker.close();

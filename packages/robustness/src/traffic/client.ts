// The program of every worker: one kind of traffic, from "go" until "finish", reported every so
// often. The traffic decides what is done.
import { setTimeout as sleep } from "node:timers/promises";
import type { FromWorker, Orders, ToWorker, Traffic } from "./messages.js";

const LEAVE_MS = 40_000;
const orders = JSON.parse(process.argv[2] ?? "") as Orders;

function say(word: FromWorker): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(word, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

async function pause(forMs: number): Promise<void> {
  await say({ kind: "asleep", forMs });
  process.kill(process.pid, "SIGSTOP");
  await sleep(1); // The signal may come a little after the call.
  await say({ kind: "awake" });
}

/** Each is loaded alone: a worker of the lock does not carry the gateway. */
async function start(): Promise<Traffic> {
  if (orders.traffic === "one lock") return new (await import("./one-lock.js")).OneLock(orders, { pause });
  if (orders.traffic === "documents") return await (await import("./documents.js")).documentTraffic(orders, { pause });
  if (orders.traffic === "intrusion") return new (await import("./intruder.js")).Intruder(orders);
  return new (await import("./load.js")).Load(orders);
}

const traffic = await start();
let work: Promise<void> = Promise.resolve();
let reporter: NodeJS.Timeout | undefined;

async function go(): Promise<void> {
  reporter = setInterval(() => void say(traffic.report()), orders.reportEveryMs).unref();
  work = traffic.work();
  await work;
  clearInterval(reporter);
  await say(traffic.report());
  await say({ kind: "done" });
}

async function leave(): Promise<void> {
  traffic.finish();
  const overdue = setTimeout(() => {
    console.error(`${orders.name} has not left within ${LEAVE_MS} ms`);
    process.exit(1);
  }, LEAVE_MS);
  await work;
  await traffic.close();
  clearTimeout(overdue);
  process.disconnect();
  process.exit(); // The control of the soak has handles that would keep the process.
}

process.on("message", (word: ToWorker) => {
  if (word.kind === "go") void go();
  else if (word.kind === "finish") traffic.finish();
  else void leave();
});
process.on("disconnect", () => process.exit());
await traffic.ready();
await say({ kind: "ready" });

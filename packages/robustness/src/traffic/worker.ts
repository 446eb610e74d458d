// The program of every worker: one kind of traffic, from "go" until "finish", reported every so
// often. The traffic decides what is done.
import { setTimeout as sleep } from "node:timers/promises";
import { type FromWorker, noTally, type Orders, type Process, type ToWorker, type Traffic } from "./messages.js";

const LEAVE_MS = 40_000;
const orders = JSON.parse(process.argv[2] ?? "") as Orders;
const finishing = new AbortController();
let tally = { ...noTally };

const self: Process = {
  over: finishing.signal,
  count: (key) => tally[key]++,
  pause: async (forMs) => {
    if (finishing.signal.aborted) return;
    await say({ kind: "asleep", forMs });
    process.kill(process.pid, "SIGSTOP");
    await sleep(1); // The signal may come a little after the call.
    await say({ kind: "awake" });
  },
};

function say(word: FromWorker): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(word, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

/** Each is loaded alone: a worker of the lock does not carry the gateway. */
async function start(): Promise<Traffic> {
  if (orders.traffic === "one lock") return (await import("./one-lock.js")).oneLock(orders, self);
  if (orders.traffic === "documents") return (await import("./documents.js")).documentTraffic(orders, self);
  if (orders.traffic === "intrusion") return (await import("./intruder.js")).intrusion(orders, self);
  return (await import("./load.js")).load(orders, self);
}

const traffic = await start();
let work: Promise<void> = Promise.resolve();

function report(): Promise<void> {
  if (traffic.reading !== undefined) return say({ kind: "reading", reading: traffic.reading() });
  const taken = tally;
  tally = { ...noTally };
  return say({ kind: "tally", tally: taken });
}

async function go(): Promise<void> {
  const reporter = setInterval(() => void report(), orders.reportEveryMs).unref();
  work = traffic.work();
  await work;
  clearInterval(reporter);
  await report();
  await say({ kind: "done" });
}

async function leave(): Promise<void> {
  finishing.abort();
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
  else if (word.kind === "finish") finishing.abort();
  else void leave();
});
process.on("disconnect", () => process.exit());
await traffic.ready();
await say({ kind: "ready" });

// The program of every worker: one kind of traffic, from "work" until "finish", reported every so
// often. The traffic decides what is done.
import { setTimeout as sleep } from "node:timers/promises";
import { answerParent } from "@palisade/testkit";
import { type Ask, noTally, type Orders, type Process, type Told, type Traffic } from "./messages.js";

const LEAVE_MS = 40_000;
const finishing = new AbortController();
let tally = { ...noTally };
let working: Promise<unknown> | undefined;
let begun: { readonly orders: Orders; readonly traffic: Traffic } | undefined;

const self: Process = {
  over: finishing.signal,
  count: (key) => tally[key]++,
  pause: async (forMs) => {
    if (finishing.signal.aborted) return;
    await tell({ kind: "asleep", forMs });
    process.kill(process.pid, "SIGSTOP");
    await sleep(1); // The signal may come a little after the call.
    await tell({ kind: "awake" });
  },
};

/** Each is loaded alone: a worker of the lock does not carry the gateway. */
async function trafficOf(orders: Orders): Promise<Traffic> {
  if (orders.traffic === "one lock") return (await import("./one-lock.js")).oneLock(orders, self);
  if (orders.traffic === "documents") return (await import("./documents.js")).documentTraffic(orders, self);
  return (await import("./intruder.js")).intrusion(orders, self);
}

function report(): Promise<void> {
  const taken = tally;
  tally = { ...noTally };
  return tell({ kind: "tally", tally: taken });
}

async function perform(ask: Ask): Promise<unknown> {
  if (typeof ask === "object") {
    begun = { orders: ask.orders, traffic: await trafficOf(ask.orders) };
    return await begun.traffic.ready();
  }
  if (ask === "finish") {
    finishing.abort();
    return undefined;
  }
  if (begun === undefined) throw new Error(`${ask} was asked of a worker without orders`);
  const { orders, traffic } = begun;
  if (ask === "work") {
    const reporter = setInterval(() => void report(), orders.reportEveryMs).unref();
    working = traffic.work();
    await working;
    clearInterval(reporter);
    return await report();
  }
  finishing.abort();
  const overdue = setTimeout(() => die(`${orders.name} has not left within ${LEAVE_MS} ms`), LEAVE_MS);
  await working;
  await traffic.close();
  clearTimeout(overdue);
  return undefined;
}

/** What goes wrong here are last words, with all that is known of it. */
function die(why: unknown): never {
  console.error(why);
  process.exit(1);
}

const tell = answerParent<Ask, Told>((ask) => perform(ask).catch(die));

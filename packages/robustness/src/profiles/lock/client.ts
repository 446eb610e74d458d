// One client of a fault run, a program of its own: takes and gives back the one resource so many times, and tells the crew what it saw. It decides nothing about
// faults, except that it stops itself by a real signal while it holds the lock, as often as it was ordered to.

import { chanceOf } from "../../harness/chance.js";
import { firstContact } from "../../harness/first-contact.js";
import type { Stall, Tenure } from "../../history/lease-record.js";
import { watchStalls } from "../../traffic/stall-watch.js";
import type { ClientOrders, FromClient, News, ToClient } from "./client-words.js";
import { palisade } from "./contender.js";
import { naive } from "./naive.js";
import { planStay, spend } from "./stay.js";

const orders = JSON.parse(process.argv[2] ?? "") as ClientOrders;
const chance = chanceOf(orders.seed, `client ${orders.client}`);
const contender = orders.kind === "palisade" ? palisade(orders) : naive(orders);
const tellEveryMs = 200;

let tenures: Tenure[] = [];
let stalls: Stall[] = [];
let refusals: Record<string, number> = {};
let enough = false;

function say(word: FromClient): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(word, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

function tellNews(): Promise<void> {
  const news: News = { kind: "news", tenures, stalls, refusals };
  [tenures, stalls, refusals] = [[], [], {}];
  return say(news);
}

/** Stopped by a signal, as a process is that is swapped out or debugged; the crew continues it. */
async function sleepFor(forMs: number): Promise<void> {
  await say({ kind: "asleep", forMs });
  process.kill(process.pid, "SIGSTOP");
  // The signal may come a little after the call.
  await new Promise((resolve) => setTimeout(resolve, 1));
  await say({ kind: "awake" });
}

async function work(): Promise<void> {
  for (let taken = 0; taken < orders.leases && !enough; ) {
    const stay = planStay(chance, orders);
    try {
      const held = await contender.acquire(stay);
      const tenure = await spend(held, stay, { client: orders.client, sleepFor });
      tenures.push(tenure);
      taken++;
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === undefined) throw error;
      refusals[code] = (refusals[code] ?? 0) + 1;
    }
  }
}

async function start(): Promise<void> {
  await firstContact(contender);
  await say({ kind: "ready" });
}

async function go(): Promise<void> {
  const teller = setInterval(() => void tellNews(), tellEveryMs);
  await work();
  clearInterval(teller);
  await tellNews();
  await say({ kind: "done" });
}

async function leave(): Promise<void> {
  stopWatching();
  await contender.close();
  await tellNews();
  process.disconnect();
}

const stopWatching = watchStalls(orders.client, (stall) => stalls.push(stall));
process.on("message", (word: ToClient) => {
  if (word.kind === "go") void go();
  else if (word.kind === "enough") enough = true;
  else void leave();
});
process.on("disconnect", () => process.exit());
await start();

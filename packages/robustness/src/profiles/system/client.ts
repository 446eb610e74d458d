// One client of a run of the whole system, a program of its own: reads, modifies and writes under the lock until it is told to finish, then until one more write of it is
// stored. It decides nothing about faults, except that it stops itself by a real signal in the middle of some of its work.
import { setTimeout as sleep } from "node:timers/promises";
import { createGatewayClient } from "@palisade/gateway/client";
import { chanceOf } from "../../harness/chance.js";
import { watchStalls } from "../../traffic/stall-watch.js";
import { bareDoor } from "./bare-door.js";
import { type Job, oversleeper, owner, pair, reader, remover, several, simple } from "./jobs.js";
import { Journal } from "./journal.js";
import { Leases } from "./leases.js";
import { rawDoor } from "./raw-door.js";
import { Recorder } from "./recorder.js";
import type { Trade } from "./trade.js";
import { typedDoor } from "./typed-door.js";
import type { ClientOrders, FromActor, ToActor } from "./words.js";

const orders = JSON.parse(process.argv[2] ?? "") as ClientOrders;
const { slot, life, mode } = orders;
const author = `c${slot}.${life}`;
const chance = chanceOf(orders.seed, author);
const journal = new Journal(orders.journal);
const recorder = new Recorder(journal, author);
const leases = new Leases(orders.redisUrls, author, journal);
const clients = orders.gatewayUrls.map((url) =>
  createGatewayClient({ url, apiKey: orders.apiKey, timeoutMs: 1_500, retry: { attempts: 3, firstPauseMs: 20, longestPauseMs: 200 } }),
);
const gateway = () => chance.one(clients);
const ownsTable = mode === "fenced" && slot % 3 === 0;
// The guard comes with the whole gateway, which is much to load for those who do not use it.
const { GuardedTable } = ownsTable ? await import("./guarded-table.js") : { GuardedTable: undefined };
const table = GuardedTable === undefined ? undefined : new GuardedTable(orders.storeUrl);
const bare = mode === "unfenced" ? bareDoor(orders.storeUrl) : undefined;
const raw = bare ?? rawDoor(orders.gatewayUrls, orders.apiKey, () => chance.between(0, 1));
const tellEveryMs = 500;

let state: "working" | "finishing" | "done" = "working";

function say(word: FromActor): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(word, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

/** Stopped by a signal, as a process is that is swapped out or debugged; the crew continues it. */
async function sleepFor(forMs: number): Promise<void> {
  if (state !== "working") return;
  await say({ kind: "asleep", forMs });
  process.kill(process.pid, "SIGSTOP");
  // The signal may come a little after the call.
  await sleep(1);
  await say({ kind: "awake" });
}

const trade: Trade = { mode, chance, leases, recorder, gateway, typed: bare ?? typedDoor(gateway), raw, table, sleepFor };

const usual: readonly Job[] = [simple, simple, simple, several, several, several, pair, remover, oversleeper, reader, reader];
const jobs: readonly Job[] =
  bare !== undefined ? [several, remover, oversleeper, oversleeper] : ownsTable ? [...usual, owner, owner, owner] : usual;

/** What the lock says no to is no failure of the client's. */
async function attempt(job: Job): Promise<"stored" | "not stored"> {
  try {
    return await job(trade);
  } catch (error) {
    if ((error as Error).name === "LockError") return "not stored";
    throw error;
  }
}

async function work(): Promise<void> {
  const teller = setInterval(() => void say(recorder.tally()), tellEveryMs);
  while (state === "working") {
    await attempt(chance.one(jobs));
    if (chance.happens(0.3)) await sleep(chance.between(0, 20));
  }
  const last = bare !== undefined ? several : simple;
  while ((await attempt(last)) !== "stored") await sleep(20);
  if (ownsTable) while ((await attempt(owner)) !== "stored") await sleep(20);
  state = "done";
  clearInterval(teller);
  await say(recorder.tally());
  await say({ kind: "done" });
}

async function leave(): Promise<void> {
  stopWatching();
  await leases.close();
  await table?.close();
  await bare?.close();
  journal.close();
  process.disconnect();
}

const stopWatching = watchStalls(slot * 1_000 + life, (stall) => journal.write({ e: "stall", ...stall }));
process.on("message", (word: ToActor) => {
  if (word.kind === "go") void work();
  else if (word.kind === "finish") state = state === "done" ? state : "finishing";
  else void leave();
});
process.on("disconnect", () => process.exit());
await leases.ready().catch(() => undefined); // After a kill it may come up in the middle of a fault; every other call waits for the nodes as well.
await say({ kind: "ready" });

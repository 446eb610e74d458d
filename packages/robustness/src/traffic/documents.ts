// Traffic of the system profile: reads, modifies and writes documents until it is told to finish,
// and then until one more write of it is stored.
import { setTimeout as sleep } from "node:timers/promises";
import { createGatewayClient } from "@palisade/client";
import { Journal } from "../history/history.js";
import { chanceOf } from "./chance.js";
import { fetchRoute } from "./fetch-route.js";
import type { DocumentOrders, Process, Traffic } from "./messages.js";
import {
  type Dependencies,
  deletion,
  documentTimes,
  guarded,
  latecomer,
  pair,
  read,
  several,
  simple,
  type Work,
} from "./read-modify-write.js";
import { palisadeLock, RecordedLock } from "./recorded-lock.js";
import { Recorder } from "./recorder.js";
import { gatewayClientRoute } from "./route.js";
import { unfencedRoute } from "./unfenced-route.js";

const retry = { attempts: 3, firstPauseMs: 20, longestPauseMs: 200 };
const usual: readonly Work[] = [simple, simple, simple, several, several, several, pair, deletion, latecomer, read, read];

export async function documentTraffic(orders: DocumentOrders, process: Process): Promise<Traffic> {
  const { name, client, fenced, ownsTable, gatewayUrls, apiKey, storeUrl } = orders;
  const chance = chanceOf(orders.seed, name);
  const journal = new Journal(orders.journal);
  const recorder = new Recorder(journal, name);
  const lock = new RecordedLock(palisadeLock(orders.redisUrls, { ...documentTimes, label: name }), journal);
  const gateways = gatewayUrls.map((url) => createGatewayClient({ url, apiKey, timeoutMs: 1_500, retry }));
  const gateway: Dependencies["gateway"] = () => chance.one(gateways);
  // The guard is exported by the whole gateway, which only clients with a table load.
  const table = ownsTable ? new (await import("./guarded-table.js")).GuardedTable(storeUrl) : undefined;
  const unfenced = fenced ? undefined : unfencedRoute(storeUrl);
  const works = fenced ? [...usual, ...(ownsTable ? [guarded, guarded, guarded] : [])] : [several, deletion, latecomer, latecomer];
  journal.recordPauses(client);
  let isFinishing = false;
  const routes = {
    byClient: unfenced ?? gatewayClientRoute(gateway),
    byFetch: unfenced ?? fetchRoute(gatewayUrls, apiKey, () => chance.between(0, 1)),
  };
  const pause = async (forMs: number): Promise<void> => (isFinishing ? undefined : process.pause(forMs));
  const dependencies: Dependencies = { fenced, chance, lock, recorder, gateway, ...routes, table, pause };
  const untilStored = async (work: Work): Promise<void> => {
    while ((await attempt(work, dependencies)) !== "stored") await sleep(20);
  };
  return {
    // A replacement may start under a fault; every later call waits for the nodes as well.
    ready: () => lock.ready().catch(() => undefined),
    work: async () => {
      while (!isFinishing) {
        await attempt(chance.one(works), dependencies);
        if (chance.happens(0.3)) await sleep(chance.between(0, 20));
      }
      await untilStored(fenced ? simple : several);
      if (ownsTable) await untilStored(guarded);
    },
    finish: () => {
      isFinishing = true;
    },
    report: () => ({ kind: "tally", tally: recorder.tally() }),
    close: async () => {
      await lock.close();
      await table?.close();
      await unfenced?.close();
      journal.close();
    },
  };
}

/** A refusal by the lock is an ordinary outcome. */
async function attempt(work: Work, dependencies: Dependencies): Promise<"stored" | "not stored"> {
  try {
    return await work(dependencies);
  } catch (error) {
    if ((error as Error).name === "LockError") return "not stored";
    throw error;
  }
}

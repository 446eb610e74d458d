// Faults of a store of several servers, one after the other: the next comes when all are in order
// again and both gateways say that they are ready. Under Patroni each meets the primary.
import { setTimeout as sleep } from "node:timers/promises";
import type { CitusCluster, PatroniCluster, PatroniNode, PostgresServer } from "@palisade/testkit";
import { type Chance, chanceOf } from "../chance.js";
import { waited } from "../history.js";
import type { Gateway } from "../servers/gateway.js";
import type { FaultLog } from "./schedule.js";

export interface StoreFaults {
  readonly kinds: readonly string[];
  /** Chooses the server that the fault meets; undoes it once the server is away. */
  choose(kind: string, chance: Chance): Promise<{ readonly target: string; readonly inject: () => Promise<void> }>;
}

interface Injecting {
  readonly gateways: readonly Gateway[];
  readonly log: FaultLog;
  readonly seed: string;
  /** How often each kind. */
  readonly rounds: number;
}

/** So much traffic goes on between two faults. */
const REST_MS = 1_500;
/** How long a server is away. */
const AWAY_MS = 2_000;
/** Long enough that a beat of the gateway is among what the standbys do not get. */
const LAG_MS = 2_500;
const POLL_MS = 50;

/** Until all were made or the signal comes; fails if something does not recover. */
export async function breakStore(faults: StoreFaults, { gateways, log, seed, rounds }: Injecting, over: AbortSignal): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const chance = chanceOf(seed, `store ${round}`);
    for (const kind of chance.some(faults.kinds, faults.kinds.length)) {
      if (!(await waited(REST_MS, over))) return;
      const { target, inject } = await faults.choose(kind, chance);
      const end = log.begin({ kind, place: "store", target });
      await inject();
      await Promise.all(gateways.map((gateway) => gateway.ready()));
      end();
    }
  }
  await waited(REST_MS, over);
}

export function citusFaults({ coordinator, workers }: CitusCluster): StoreFaults {
  return {
    kinds: ["worker killed", "worker restarted", "worker paused", "coordinator killed", "coordinator restarted"],
    choose: async (kind, chance) => {
      const index = chance.between(0, workers.length - 1);
      const isWorker = kind.startsWith("worker");
      const server = isWorker ? (workers[index] as PostgresServer) : coordinator;
      return { target: isWorker ? `worker ${index + 1}` : "coordinator", inject: () => breakServer(server, kind) };
    },
  };
}

async function breakServer(server: PostgresServer, kind: string): Promise<void> {
  if (kind.endsWith("restarted")) return await server.restart();
  const isPaused = kind.endsWith("paused");
  await (isPaused ? server.pause() : server.crash());
  await sleep(AWAY_MS);
  await (isPaused ? server.resume() : server.restart());
}

/** Without two that are part of the last one, each of which waits for Patroni's ttl. */
const brief = ["switchover", "Postgres killed", "cut off from etcd", "cut off from standbys, then killed"];
const kindsOf = {
  all: [...brief, "agent killed", "machine killed"],
  brief,
  control: ["cut off from standbys, then killed"],
};

/** `failedOver` is called when another server has become the primary and has not all that was written. */
export function patroniFaults(cluster: PatroniCluster, which: keyof typeof kindsOf, failedOver?: () => Promise<unknown>): StoreFaults {
  const replaced = async (former: PatroniNode): Promise<void> => {
    while ((await cluster.primary()) === former) await sleep(POLL_MS);
  };
  /** The server is as it was when this resolves, or on its way. */
  const inject = async (kind: string, primary: PatroniNode): Promise<void> => {
    if (kind === "switchover") {
      await cluster.switchOver();
      return await replaced(primary);
    }
    // Patroni starts it again where it was, or has another one take over.
    if (kind === "Postgres killed") return await primary.killPostgres();
    if (kind === "cut off from etcd") {
      await Promise.all(primary.toEtcd.map((way) => way.partition()));
      await replaced(primary);
      return void (await Promise.all(primary.toEtcd.map((way) => way.heal())));
    }
    const isCutOff = kind === "cut off from standbys, then killed";
    if (isCutOff) {
      await primary.fromStandbys.partition();
      await sleep(LAG_MS);
    }
    await primary.killAgent();
    if (kind !== "agent killed") await primary.killPostgres();
    if (isCutOff) await primary.fromStandbys.heal();
    await replaced(primary);
    if (isCutOff) await failedOver?.();
    primary.startAgent();
  };
  return {
    kinds: kindsOf[which],
    choose: async (kind) => {
      const primary = await cluster.primary();
      return {
        target: primary.name,
        inject: async () => {
          await inject(kind, primary);
          await cluster.whole();
        },
      };
    },
  };
}

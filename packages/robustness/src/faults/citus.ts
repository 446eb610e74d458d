// Faults of the servers of a Citus cluster, one after the other: the next comes when both gateways
// say that they are ready.
import { setTimeout as sleep } from "node:timers/promises";
import type { CitusCluster, PostgresServer } from "@palisade/testkit";
import type { Signals } from "../harness/run.js";
import { waited } from "../history/records.js";
import type { Gateway } from "../servers/gateway.js";
import { chanceOf } from "../traffic/chance.js";
import type { FaultLog } from "./fault-log.js";

export const citusFaults = ["worker killed", "worker restarted", "worker paused", "coordinator killed", "coordinator restarted"] as const;
type CitusFault = (typeof citusFaults)[number];

interface CitusFaults {
  readonly cluster: CitusCluster;
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

/** Until all were made or the signal comes. */
export async function injectCitusFaults({ cluster, gateways, log, seed, rounds }: CitusFaults, { over }: Signals): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const chance = chanceOf(seed, `citus ${round}`);
    for (const kind of chance.some(citusFaults, citusFaults.length)) {
      if (!(await waited(REST_MS, over))) return;
      const index = chance.between(0, cluster.workers.length - 1);
      const isWorker = kind.startsWith("worker");
      const server = isWorker ? (cluster.workers[index] as PostgresServer) : cluster.coordinator;
      const end = log.begin({ kind, place: "store", target: isWorker ? `worker ${index + 1}` : "coordinator" });
      await injectOne(server, kind);
      await Promise.all(gateways.map((gateway) => gateway.ready()));
      end();
    }
  }
  await waited(REST_MS, over);
}

async function injectOne(server: PostgresServer, kind: CitusFault): Promise<void> {
  if (kind.endsWith("restarted")) return await server.restart();
  if (kind.endsWith("paused")) {
    await server.pause();
    await sleep(AWAY_MS);
    return await server.resume();
  }
  await server.crash();
  await sleep(AWAY_MS);
  await server.restart();
}

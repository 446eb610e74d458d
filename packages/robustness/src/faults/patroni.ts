// Faults of three Postgres servers under Patroni, one after the other: each meets the primary, and
// the next comes when all three are in order again and both gateways say that they are ready.
import { setTimeout as sleep } from "node:timers/promises";
import type { PatroniCluster, PatroniNode } from "@palisade/testkit";
import type { Signals } from "../harness/run.js";
import { waited } from "../history/records.js";
import type { Gateway } from "../servers/gateway.js";
import { chanceOf } from "../traffic/chance.js";
import type { FaultLog } from "./fault-log.js";

export const patroniFaults = [
  "switchover",
  "Postgres killed",
  "agent killed",
  "machine killed",
  "cut off from etcd",
  "cut off from standbys, then killed",
] as const;
export type PatroniFault = (typeof patroniFaults)[number];

interface PatroniFaults {
  readonly cluster: PatroniCluster;
  readonly gateways: readonly Gateway[];
  readonly log: FaultLog;
  readonly seed: string;
  /** How often each kind. */
  readonly rounds: number;
  readonly kinds: readonly PatroniFault[];
  /** Called when another server has become the primary by a fault. */
  readonly failedOver?: () => Promise<unknown>;
}

/** So much traffic goes on between two faults. */
const REST_MS = 1_500;
/** Long enough that a beat of the gateway is among what the standbys do not get. */
const LAG_MS = 2_500;
const POLL_MS = 50;

/** Until all were made or the signal comes; fails if something does not recover. */
export async function injectPatroniFaults(settings: PatroniFaults, { over }: Signals): Promise<void> {
  const { cluster, gateways, log, seed, rounds, kinds } = settings;
  for (let round = 1; round <= rounds; round++)
    for (const kind of chanceOf(seed, `patroni ${round}`).some(kinds, kinds.length)) {
      if (!(await waited(REST_MS, over))) return;
      const primary = await cluster.primary();
      const end = log.begin({ kind, place: "store", target: primary.name });
      await injectOne(settings, kind, primary);
      await cluster.whole();
      await Promise.all(gateways.map((gateway) => gateway.ready()));
      end();
    }
  await waited(REST_MS, over);
}

/** The server is as it was when this resolves, or on its way. */
async function injectOne({ cluster, failedOver }: PatroniFaults, kind: PatroniFault, primary: PatroniNode): Promise<void> {
  switch (kind) {
    case "switchover":
      await cluster.switchOver();
      await replaced(cluster, primary);
      return;
    case "Postgres killed":
      // Patroni starts it again where it was, or has another one take over.
      await primary.killPostgres();
      return;
    case "agent killed":
      await primary.killAgent();
      await replaced(cluster, primary);
      primary.startAgent();
      return;
    case "machine killed":
      await primary.killAgent();
      await primary.killPostgres();
      await replaced(cluster, primary);
      primary.startAgent();
      return;
    case "cut off from etcd":
      await Promise.all(primary.toEtcd.map((way) => way.partition()));
      await replaced(cluster, primary);
      await Promise.all(primary.toEtcd.map((way) => way.heal()));
      return;
    case "cut off from standbys, then killed":
      await primary.fromStandbys.partition();
      await sleep(LAG_MS);
      await primary.killAgent();
      await primary.killPostgres();
      await primary.fromStandbys.heal();
      await replaced(cluster, primary);
      await failedOver?.();
      primary.startAgent();
  }
}

/** Resolves when another node is the primary. */
async function replaced(cluster: PatroniCluster, former: PatroniNode): Promise<void> {
  while ((await cluster.primary()) === former) await sleep(POLL_MS);
}

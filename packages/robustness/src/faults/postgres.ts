// Faults of Postgres: crash, restart, pause, and the failover to its standby.
import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../servers/gateway.js";
import type { Store } from "../servers/store.js";
import type { FaultLog } from "./fault-log.js";
import { restartGateway } from "./processes.js";

type PostgresFault = "store crashed" | "store restarted" | "store paused";

export function breakPostgres(log: FaultLog, store: Store, { kind, lastsMs }: { kind: PostgresFault; lastsMs: number }): Promise<void> {
  return log.alone(store, { kind, place: "store", target: "store" }, async () => {
    const { server } = store;
    if (kind === "store paused") {
      await server.pause();
      await sleep(lastsMs);
      return server.resume();
    }
    if (kind === "store crashed") {
      await server.crash();
      await sleep(lastsMs);
    }
    await server.restart();
  });
}

interface FailingOver {
  readonly store: Store;
  readonly gateways: readonly Gateway[];
}

/**
 * Waits for other faults of the store, because it must happen. The gateways restart with another
 * durability: the standby is gone.
 */
export async function failOver(log: FaultLog, { store, gateways }: FailingOver, giveUp: AbortSignal): Promise<void> {
  await log.free(store);
  await log.alone(store, { kind: "store failed over", place: "store", target: "store" }, () => store.failOver());
  await Promise.all(
    gateways.map(async (gateway) => {
      gateway.env = { ...gateway.env, PALISADE_DURABILITY: "local" };
      await log.free(gateway);
      await restartGateway(log, gateway, { kind: "gateway killed", lastsMs: 0, giveUp });
    }),
  );
}

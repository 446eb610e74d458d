// Faults of the clients: stopped for a while, or killed and replaced.
import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "../harness/workers.js";
import type { FaultLog } from "./fault-log.js";

export function stopClient(log: FaultLog, client: Worker, lastsMs: number): Promise<void> {
  return log.alone(client, { kind: "client stopped", place: "clients", target: client.name }, async () => {
    client.stop();
    await sleep(lastsMs);
    client.continue();
  });
}

export function killClient(log: FaultLog, client: Worker): Promise<void> {
  return log.alone(client, { kind: "client killed", place: "clients", target: client.name }, () => client.replace());
}

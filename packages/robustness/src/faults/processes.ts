// Faults of the gateways and the clients: killed, drained, paused, stopped.
import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "../harness/workers.js";
import type { Gateway } from "../servers/gateway.js";
import type { FaultLog } from "./fault-log.js";

interface Restart {
  readonly kind: "gateway killed" | "gateway drained";
  readonly lastsMs: number;
  /** No more waiting for the gateway to come up. */
  readonly giveUp: AbortSignal;
}

export function restartGateway(log: FaultLog, gateway: Gateway, { kind, lastsMs, giveUp }: Restart): Promise<void> {
  return log.alone(gateway, { kind, place: "gateways", target: gateway.name }, async () => {
    if (kind === "gateway drained") await gateway.drain();
    else {
      await gateway.kill();
      await sleep(lastsMs);
    }
    await gateway.restart(giveUp);
  });
}

export function pauseGateway(log: FaultLog, gateway: Gateway, lastsMs: number): Promise<void> {
  return log.alone(gateway, { kind: "gateway paused", place: "gateways", target: gateway.name }, async () => {
    gateway.pause();
    await sleep(lastsMs);
    gateway.resume();
  });
}

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

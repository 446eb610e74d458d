// Faults of the gateways: killed, drained, paused.
import { setTimeout as sleep } from "node:timers/promises";
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
    await gateway.start(giveUp);
  });
}

export function pauseGateway(log: FaultLog, gateway: Gateway, lastsMs: number): Promise<void> {
  return log.alone(gateway, { kind: "gateway paused", place: "gateways", target: gateway.name }, async () => {
    gateway.pause();
    await sleep(lastsMs);
    gateway.resume();
  });
}

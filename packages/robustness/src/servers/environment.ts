// All of a run that can be broken: servers, workers, and the links between them.
import type { FaultProxy, FleetWay, RedisFleet } from "@palisade/testkit";
import type { Workers } from "../harness/workers.js";
import type { SelfReading } from "../traffic/probe.js";
import type { Gateway } from "./gateway.js";
import type { Store } from "./store.js";

export interface ClientLinks {
  readonly nodes: FleetWay;
  /** One to each gateway. */
  readonly gateways: readonly FaultProxy[];
  /** Of clients that write to the store themselves. */
  readonly store?: FaultProxy;
}

export interface GatewayLinks {
  readonly nodes: FleetWay;
  readonly store: FaultProxy;
}

export interface Environment {
  /** What runs, in one line. */
  readonly servers: string;
  readonly fleet: RedisFleet;
  /** None where the run is about the lock alone, or has faults of its own for it. */
  readonly store: Store | undefined;
  /** None in the control. */
  readonly gateways: readonly Gateway[];
  readonly gatewayLinks: readonly GatewayLinks[];
  readonly clientLinks: readonly ClientLinks[];
  readonly workers: Workers;
}

/** What a soak puts under load. */
export interface SoakEnvironment {
  readonly fleet: RedisFleet;
  readonly gateway: Gateway;
  /** Between the clients and the gateway. */
  readonly gatewayLink: FaultProxy;
  /** What the gateway last said of itself, and when. */
  readonly gatewaySelf: { self: SelfReading | undefined; at: number };
  readonly workers: Workers;
  /** One statement to Postgres, on a connection of its own. */
  ask(statement: string): Promise<Record<string, unknown>>;
}

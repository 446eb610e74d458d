// Everything of a run that can be broken, in one place: servers, workers, and the links between
// them.
import type { FaultProxy, FleetWay, RedisFleet } from "@palisade/testkit";
import type { Workers } from "../harness/workers.js";
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
  readonly fleet: RedisFleet;
  /** None where the run is about the lock alone. */
  readonly store: Store | undefined;
  /** None in the control. */
  readonly gateways: readonly Gateway[];
  readonly gatewayLinks: readonly GatewayLinks[];
  readonly clientLinks: readonly ClientLinks[];
  readonly workers: Workers;
}

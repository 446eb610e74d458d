// Everything of a run that can be broken, in one place. Plain data.
import type { FaultProxy, FleetWay, RedisFleet } from "@palisade/testkit";
import type { Cast } from "./cast.js";
import type { GatewayUnderFire } from "./gateways.js";
import type { StoreUnderFire } from "./store.js";

export interface ClientWays {
  readonly nodes: FleetWay;
  /** One to each gateway. */
  readonly gateways: readonly FaultProxy[];
  readonly store: FaultProxy;
}

export interface GatewayWays {
  readonly nodes: FleetWay;
  readonly store: FaultProxy;
}

export interface Stage {
  readonly fleet: RedisFleet;
  readonly store: StoreUnderFire;
  /** None in the control. */
  readonly gateways: readonly GatewayUnderFire[];
  /** Of each gateway. */
  readonly gatewayWays: readonly GatewayWays[];
  /** Of each client. */
  readonly clientWays: readonly ClientWays[];
  readonly cast: Cast;
}

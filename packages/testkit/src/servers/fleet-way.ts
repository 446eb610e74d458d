// One more set of proxies in front of a fleet: one client's part of the network.
import type { FaultProxy } from "../proxy/fault-proxy.js";

export class FleetWay {
  /** In the order of the fleet's nodes, for faults beyond the shorthands below. */
  readonly proxies: readonly FaultProxy[];

  constructor(proxies: readonly FaultProxy[]) {
    this.proxies = proxies;
  }

  /** In the order of the fleet's nodes. */
  get urls(): string[] {
    return this.proxies.map((proxy) => `redis://${proxy.host}:${proxy.port}`);
  }

  async partition(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.partition()));
  }

  async refuse(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.refuse()));
  }

  async heal(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.heal()));
  }
}

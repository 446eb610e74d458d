// What happens to the gateways, the store and the clients. One fault at a time on each of them; the store fails over when nothing else ails it.
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultLog, Place } from "../../faults/fault-log.js";
import type { Actor } from "./cast.js";
import type { GatewayUnderFire } from "./gateways.js";
import type { StoreUnderFire } from "./store.js";
import { TTL_MS } from "./words.js";

export class ServiceStrikes {
  readonly #log: FaultLog;
  readonly #hopeless: AbortSignal;
  readonly #busy = new Map<object, Promise<void>>();

  constructor(log: FaultLog, hopeless: AbortSignal) {
    this.#log = log;
    this.#hopeless = hopeless;
  }

  killGateway(gateway: GatewayUnderFire, lastsMs: number): Promise<void> {
    return this.#while(gateway, { kind: "gateway killed", place: "gateways", target: gateway.name }, async () => {
      await gateway.kill();
      await sleep(lastsMs);
      await gateway.start(this.#hopeless);
    });
  }

  drainGateway(gateway: GatewayUnderFire): Promise<void> {
    return this.#while(gateway, { kind: "gateway drained", place: "gateways", target: gateway.name }, async () => {
      await gateway.drain();
      await gateway.start(this.#hopeless);
    });
  }

  pauseGateway(gateway: GatewayUnderFire, lastsMs: number): Promise<void> {
    return this.#while(gateway, { kind: "gateway paused", place: "gateways", target: gateway.name }, async () => {
      gateway.pause();
      await sleep(lastsMs);
      gateway.resume();
    });
  }

  strikeStore(store: StoreUnderFire, kind: "store crashed" | "store restarted" | "store paused", lastsMs: number): Promise<void> {
    return this.#while(store, { kind, place: "store", target: "store" }, async () => {
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

  /** Waits for its turn, because it must happen. The gateways are started anew: what was promised of durability is different now. */
  async failOver(store: StoreUnderFire, gateways: readonly GatewayUnderFire[]): Promise<void> {
    while (this.#busy.has(store)) await this.#busy.get(store);
    await this.#while(store, { kind: "store failed over", place: "store", target: "store" }, () => store.failOver());
    await Promise.all(
      gateways.map(async (gateway) => {
        gateway.durability = "local";
        while (this.#busy.has(gateway)) await this.#busy.get(gateway);
        await this.killGateway(gateway, 0);
      }),
    );
  }

  stopClient(client: Actor, lastsMs: number): Promise<void> {
    return this.#while(client, { kind: "client stopped", place: "clients", target: client.name }, async () => {
      client.stop();
      await sleep(TTL_MS + lastsMs);
      client.continue();
    });
  }

  killClient(client: Actor): Promise<void> {
    return this.#while(client, { kind: "client killed", place: "clients", target: client.name }, () => client.replace());
  }

  #while(whom: object, fault: { kind: string; place: Place; target: string }, happens: () => Promise<void>): Promise<void> {
    if (this.#busy.has(whom)) {
      this.#log.leaveOut(fault.kind);
      return Promise.resolve();
    }
    const end = this.#log.begin(fault);
    const done = happens().finally(() => {
      end();
      this.#busy.delete(whom);
    });
    this.#busy.set(whom, done);
    return done;
  }
}

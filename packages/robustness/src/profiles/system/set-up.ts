// Starts everything of a run in order, and gives it back in the reverse order. It decides who has which way to whom.
import { join } from "node:path";
import { createLocker } from "@palisade/lock";
import { RedisFleet } from "@palisade/testkit";
import { Cast, type Part } from "./cast.js";
import type { Ending } from "./ending.js";
import { GatewayUnderFire, type Key, newKey } from "./gateways.js";
import { journalName } from "./gather.js";
import { guardedTables } from "./guarded-table.js";
import type { ClientWays, GatewayWays, Stage } from "./stage.js";
import { StoreUnderFire } from "./store.js";
import { type ClientOrders, MAX_TTL_MS, type Mode, type StrangerOrders } from "./words.js";

export const NODES = 5;
export const GATEWAYS = 2;

export interface StageOptions {
  readonly seed: string;
  readonly mode: Mode;
  readonly clients: number;
  /** Where the journals go. */
  readonly folder: string;
  readonly ending: Ending;
}

export async function setUp(options: StageOptions): Promise<Stage> {
  const { clients, mode, ending } = options;
  const [fleet, store] = await Promise.all([RedisFleet.start({ nodes: NODES }), StoreUnderFire.start()]);
  ending.use(fleet);
  ending.use(store);
  await Promise.all([store.prepare(guardedTables), found(fleet)]);
  const keys = ["forger", "careless", ...Array.from({ length: clients }, (_, slot) => `c${slot}`)].map(newKey);
  const gateways: GatewayUnderFire[] = [];
  const gatewayWays: GatewayWays[] = [];
  for (let index = 0; index < (mode === "fenced" ? GATEWAYS : 0); index++) {
    const nodes = await fleet.anotherWay();
    const { url, way } = await store.anotherWay();
    gatewayWays.push({ nodes, store: way });
    gateways.push(ending.use(new GatewayUnderFire({ name: `gateway ${index + 1}`, databaseUrl: url, redisUrls: nodes.urls, keys })));
  }
  await Promise.all(gateways.map((gateway) => gateway.start()));
  const clientWays: ClientWays[] = [];
  const parts: Part[] = [];
  for (let slot = 0; slot < clients; slot++) {
    const [nodes, { url, way }] = await Promise.all([fleet.anotherWay(), store.anotherWay()]);
    const toGateways = await Promise.all(gateways.map((gateway) => gateway.anotherWay()));
    clientWays.push({ nodes, gateways: toGateways, store: way });
    const gatewayUrls = toGateways.map(({ host, port }) => `http://${host}:${port}`);
    parts.push(clientPart(options, { slot, redisUrls: nodes.urls, gatewayUrls, storeUrl: url, apiKey: secretOf(keys, `c${slot}`) }));
  }
  if (mode === "fenced") parts.push(...(await strangerParts(options, gateways, keys)));
  const cast = ending.use(new Cast(parts));
  await cast.all("ready");
  return { fleet, store, gateways, gatewayWays, clientWays, cast };
}

/** Whoever meets a new fleet first decides how long leases may be: not a gateway, which knows nothing of that. */
async function found({ urls }: RedisFleet): Promise<void> {
  await using locker = createLocker({ nodes: urls, maxTtlMs: MAX_TTL_MS, label: "founder" });
  await locker.ready();
}

type Surroundings = Pick<ClientOrders, "slot" | "redisUrls" | "gatewayUrls" | "storeUrl" | "apiKey">;

function clientPart({ seed, mode, folder }: StageOptions, surroundings: Surroundings): Part {
  const name = `c${surroundings.slot}`;
  const orders = (life: number): ClientOrders => ({ ...surroundings, life, mode, seed, journal: join(folder, journalName(name, life)) });
  return { name, program: "client", orders };
}

function strangerParts({ seed, folder }: StageOptions, gateways: readonly GatewayUnderFire[], keys: readonly Key[]): Promise<Part[]> {
  return Promise.all(
    (["forger", "careless"] as const).map(async (trade): Promise<Part> => {
      const ways = await Promise.all(gateways.map((gateway) => gateway.anotherWay()));
      const gatewayUrls = ways.map(({ host, port }) => `http://${host}:${port}`);
      const apiKey = secretOf(keys, trade);
      const orders = (life: number): StrangerOrders => ({
        trade,
        seed,
        apiKey,
        gatewayUrls,
        journal: join(folder, journalName(trade, life)),
      });
      return { name: trade, program: "stranger", orders };
    }),
  );
}

function secretOf(keys: readonly Key[], name: string): string {
  return keys.find(({ id }) => id === name)?.secret ?? "";
}

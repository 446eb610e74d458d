// What every run of the whole system starts: the lock's nodes, gateways, clients and intruders, and
// a link between any two, around a store that the profile brings.
import { createLocker } from "@palisade/lock";
import { RedisFleet } from "@palisade/testkit";
import type { Closers } from "../harness/run.js";
import { type Place, Workers } from "../harness/workers.js";
import { GUARDED_TABLES } from "../traffic/guarded-table.js";
import { documentTimes } from "../traffic/read-modify-write.js";
import { UNFENCED_TABLES } from "../traffic/unfenced-route.js";
import { clientNumber, journalName } from "./collect.js";
import type { ClientLinks, Environment, GatewayLinks } from "./environment.js";
import { Gateway, type Key, keyring, newKey } from "./gateway.js";
import type { SystemStore } from "./system-store.js";

export const GATEWAYS = 2;
const REPORT_EVERY_MS = 500;

interface SystemOptions {
  readonly seed: string;
  readonly clients: number;
  /** Not in a control: then there are no gateways, and clients write to the store. */
  readonly isFenced: boolean;
  /** Redis servers, and how many of them processes are configured with. */
  readonly servers: number;
  readonly listed: number;
  readonly folder: string;
  readonly store: SystemStore;
  /** Of programs that the profile starts itself. */
  readonly keys?: readonly Key[];
  /** Beside the usual settings of the gateways. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startSystem(options: SystemOptions, closers: Closers): Promise<Omit<Environment, "store">> {
  const { store, servers, isFenced } = options;
  const fleet = closers.use(await RedisFleet.start({ nodes: servers }));
  const listed = (urls: readonly string[]): readonly string[] => urls.slice(0, options.listed);
  await Promise.all([store.query(GUARDED_TABLES), store.query(UNFENCED_TABLES), found(listed(fleet.urls))]);
  const clients = Array.from({ length: options.clients }, (_, slot) => `c${slot}`);
  const keys = [...["forger", "careless", ...clients].map(newKey), ...(options.keys ?? [])];
  const gateways: Gateway[] = [];
  const gatewayLinks: GatewayLinks[] = [];
  for (let index = 0; index < (isFenced ? GATEWAYS : 0); index++) {
    const nodes = await fleet.anotherWay();
    const { url, proxy } = await (store.linkOfGateway?.(index) ?? store.link());
    gatewayLinks.push({ nodes, store: proxy });
    const env = { ...gatewayEnv(url, listed(nodes.urls), keys), ...options.env };
    gateways.push(closers.use(new Gateway({ name: `gateway ${index + 1}`, env })));
  }
  await Promise.all(gateways.map((gateway) => gateway.start()));
  const clientLinks: ClientLinks[] = [];
  const places: Place[] = [];
  for (const [slot, name] of clients.entries()) {
    const [nodes, toStore] = await Promise.all([fleet.anotherWay(), store.link()]);
    const toGateways = await Promise.all(gateways.map((gateway) => gateway.link()));
    clientLinks.push({ nodes, gateways: toGateways.map(({ proxy }) => proxy), store: toStore.proxy });
    const gatewayUrls = toGateways.map(({ url }) => url);
    places.push(clientPlace(options, keys, { name, slot, redisUrls: listed(nodes.urls), gatewayUrls, storeUrl: toStore.url }));
  }
  if (isFenced)
    for (const intruder of ["forger", "careless"] as const) {
      const links = await Promise.all(gateways.map((gateway) => gateway.link()));
      places.push(intruderPlace(options, keys, { intruder, gatewayUrls: links.map(({ url }) => url) }));
    }
  const workers = closers.use(new Workers(places));
  await Promise.race([workers.said("ready"), ...gateways.map((gateway) => gateway.ended())]);
  return { fleet, gateways, gatewayLinks, clientLinks, workers, servers: fleet.description };
}

/** The first contact with a new fleet settles the longest ttl, which a gateway does not know. */
async function found(urls: readonly string[]): Promise<void> {
  await using locker = createLocker({ nodes: [...urls], maxTtlMs: documentTimes.maxTtlMs, label: "founder" });
  await locker.ready();
}

function gatewayEnv(databaseUrl: string, redisUrls: readonly string[], keys: readonly Key[]): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    PALISADE_REDIS_URLS: redisUrls.join(","),
    PALISADE_API_KEYS: keyring(keys),
    PALISADE_HISTORY: "on",
    PALISADE_DURABILITY: "sync",
    PALISADE_WRITE_TIMEOUT_MS: "900",
    PALISADE_READ_TIMEOUT_MS: "900",
    PALISADE_CONNECT_TIMEOUT_MS: "400",
    PALISADE_MAX_WAIT_MS: "900",
    PALISADE_LOCK_WAIT_MS: "300",
    PALISADE_DRAIN_MS: "2000",
  };
}

interface ClientPlace {
  readonly name: string;
  readonly slot: number;
  readonly redisUrls: readonly string[];
  readonly gatewayUrls: readonly string[];
  readonly storeUrl: string;
}

type PlaceOptions = Pick<SystemOptions, "seed" | "folder" | "isFenced">;

function clientPlace({ seed, folder, isFenced }: PlaceOptions, keys: readonly Key[], { name, slot, ...urls }: ClientPlace): Place {
  const fixed = { traffic: "documents" as const, seed, fenced: isFenced, ownsTable: isFenced && slot % 3 === 0, ...urls };
  const orders: Place["orders"] = (startNumber) => ({
    ...fixed,
    name: `${name}.${startNumber}`,
    client: clientNumber(slot, startNumber),
    journal: `${folder}/${journalName(name, startNumber)}`,
    apiKey: secretOf(keys, name),
    reportEveryMs: REPORT_EVERY_MS,
  });
  return { name, orders };
}

type IntruderPlace = Pick<ClientPlace, "gatewayUrls"> & { readonly intruder: "forger" | "careless" };

function intruderPlace({ seed, folder }: PlaceOptions, keys: readonly Key[], { intruder, gatewayUrls }: IntruderPlace): Place {
  const orders: Place["orders"] = (startNumber) => ({
    traffic: "intrusion",
    name: `${intruder}.${startNumber}`,
    intruder,
    seed,
    gatewayUrls,
    journal: `${folder}/${journalName(intruder, startNumber)}`,
    apiKey: secretOf(keys, intruder),
    reportEveryMs: REPORT_EVERY_MS,
  });
  return { name: intruder, orders };
}

function secretOf(keys: readonly Key[], name: string): string {
  return keys.find(({ id }) => id === name)?.secret ?? "";
}

// What every run of the whole system starts: the lock's nodes, gateways, clients and intruders, and
// a link between any two, around a store that the profile brings; and what that has stored.
import { createLocker } from "@palisade/lock";
import { type Closers, type FaultProxy, type FleetWay, RedisFleet } from "@palisade/testkit";
import { clientNumber, type Document, type Entry, type Final, type History, journalName } from "../history.js";
import { type Place, Workers } from "../runs/workers.js";
import { documentTimes, GUARDED_TABLES, rows } from "../traffic/documents.js";
import { intruded } from "../traffic/intruder.js";
import { UNFENCED_TABLES } from "../traffic/routes.js";
import { Gateway, type Key, keyring, newKey } from "./gateway.js";
import type { PairStore, StoreFaults, SystemStore } from "./stores.js";

/** All of a run that can be broken: servers, workers, and the links between them. */
export interface Environment {
  /** What runs, in one line. */
  readonly servers: string;
  readonly fleet: RedisFleet;
  /** None where the run is about the lock alone, or has faults of its own for it. */
  readonly store?: PairStore;
  readonly storeFaults?: StoreFaults;
  /** None in the control. */
  readonly gateways: readonly Gateway[];
  readonly gatewayLinks: readonly { readonly nodes: FleetWay; readonly store: FaultProxy }[];
  readonly clientLinks: readonly ClientLinks[];
  readonly workers: Workers;
  /** What the servers have stored. */
  collect?(): Promise<Partial<History>>;
}

export interface ClientLinks {
  readonly nodes: FleetWay;
  /** One to each gateway. */
  readonly gateways: readonly FaultProxy[];
  /** Of clients that write to the store themselves. */
  readonly store?: FaultProxy;
}

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
  /** Beside the usual settings of the gateways. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startSystem(options: SystemOptions, closers: Closers): Promise<Environment> {
  const { store, servers, isFenced, seed, folder } = options;
  const fleet = closers.use(await RedisFleet.start({ nodes: servers }));
  const listed = (urls: readonly string[]): readonly string[] => urls.slice(0, options.listed);
  await Promise.all([store.query(GUARDED_TABLES), store.query(UNFENCED_TABLES), found(listed(fleet.urls))]);
  const clients = Array.from({ length: options.clients }, (_, slot) => `c${slot}`);
  const intruders = isFenced ? (["forger", "careless"] as const) : [];
  const keys = [...intruders, ...clients].map(newKey);
  const gatewayLinks = await Promise.all(
    Array.from({ length: isFenced ? GATEWAYS : 0 }, async (_, index) => {
      return { nodes: await fleet.anotherWay(), toStore: await store.link(index) };
    }),
  );
  const gateways = gatewayLinks.map(({ nodes, toStore }, index) => {
    const env = { ...gatewayEnv(toStore.url, listed(nodes.urls), keys), ...options.env };
    return closers.use(new Gateway(`gateway ${index + 1}`, env));
  });
  await Promise.all(gateways.map((gateway) => gateway.start()));
  const common = (name: string, startNumber: number) => ({
    name: `${name}.${startNumber}`,
    seed,
    journal: `${folder}/${journalName(name, startNumber)}`,
    apiKey: keys.find(({ id }) => id === name)?.secret ?? "",
    reportEveryMs: REPORT_EVERY_MS,
  });
  const clientLinks: ClientLinks[] = [];
  const places: Place[] = [];
  for (const [slot, name] of clients.entries()) {
    const [nodes, toStore] = await Promise.all([fleet.anotherWay(), store.link()]);
    const toGateways = await Promise.all(gateways.map((gateway) => gateway.link()));
    clientLinks.push({ nodes, gateways: toGateways.map(({ proxy }) => proxy), store: toStore.proxy });
    const urls = { redisUrls: listed(nodes.urls), gatewayUrls: toGateways.map(({ url }) => url), storeUrl: toStore.url };
    const fixed = { traffic: "documents", fenced: isFenced, ownsTable: isFenced && slot % 3 === 0, ...urls } as const;
    places.push({ name, orders: (start) => ({ ...fixed, ...common(name, start), client: clientNumber(slot, start) }) });
  }
  for (const intruder of intruders) {
    const links = await Promise.all(gateways.map((gateway) => gateway.link()));
    const gatewayUrls = links.map(({ url }) => url);
    places.push({ name: intruder, orders: (start) => ({ traffic: "intrusion", intruder, gatewayUrls, ...common(intruder, start) }) });
  }
  const workers = closers.use(new Workers(places));
  await Promise.race([workers.ready(), ...gateways.map((gateway) => gateway.ended())]);
  return {
    fleet,
    gateways,
    gatewayLinks: gatewayLinks.map(({ nodes, toStore }) => ({ nodes, store: toStore.proxy })),
    clientLinks,
    workers,
    servers: `${fleet.description}; ${store.description}; ${gateways.length} gateways`,
    collect: () => (isFenced ? collectFenced(store) : collectUnfenced(store)),
  };
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
    PALISADE_DRAIN_MS: "2000",
  };
}

type Stored = Pick<History, "entries" | "finals" | "strangeFences">;

/** Documents and rows of guarded tables. */
async function collectFenced(store: SystemStore): Promise<Stored> {
  const entries = await store.query<Entry>("select resource, rev::float8, token::float8, seq::float8, op from palisade.history");
  const guarded = await store.query<Entry>(
    "select resource, rev::float8, token::float8, 0::float8 as seq, by, 'guarded' as op from account_entries",
  );
  const fences = await store.query<{ resource: string; rev: number; token: number; value: Document | null }>(
    "select resource, rev::float8, token::float8, value from palisade.resources",
  );
  const accounts = await store.query<{ resource: string; rev: number; value: Document }>(
    "select resource, rev::float8, value from accounts",
  );
  const isIntruded = ({ resource }: { readonly resource: string }): boolean => intruded.some((name) => name === resource);
  const documents = fences.filter((fence) => !rows.some((row) => row === fence.resource) && !isIntruded(fence));
  const finals: Final[] = [
    ...documents.map(({ resource, rev, token, value }) => ({ resource, rev, token, document: value })),
    ...accounts.map(({ resource, rev, value }) => {
      return { resource, rev, token: fences.find((fence) => fence.resource === resource)?.token, document: value };
    }),
  ];
  return { entries: [...entries, ...guarded], finals, strangeFences: fences.filter(isIntruded) };
}

async function collectUnfenced(store: SystemStore): Promise<Stored> {
  const entries = await store.query<Entry>("select resource, rev::float8, token::float8, seq::float8, op from unfenced_history");
  const finals = await store.query<{ resource: string; rev: number; value: Document | null }>(
    "select resource, rev::float8, value from unfenced_documents",
  );
  return { entries, finals: finals.map(({ value, ...row }) => ({ ...row, token: undefined, document: value })), strangeFences: [] };
}

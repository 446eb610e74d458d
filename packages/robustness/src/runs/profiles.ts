// What runs there are: the whole system, the same over a store of several servers, the lock alone. Each says what may be
// asked of it, which servers and clients it has, how often each fault is drawn and for how long, and what its control
// must do.
import { setTimeout as sleep } from "node:timers/promises";
import { type Closers, gatewayProgram, RedisFleet, startNode } from "@palisade/testkit";
import { minutesOf, numberFor, shortOr, type Values } from "../command.js";
import type { Plan } from "../faults/schedule.js";
import { clientNumber, journalName } from "../history.js";
import { citusFaults, PairStore, patroniFaults, startCitusStore, startPatroniStore } from "../servers/stores.js";
import { type Environment, GATEWAYS, startSystem } from "../servers/system.js";
import { documentTimes } from "../traffic/documents.js";
import { lockTimes, RESOURCE } from "../traffic/one-lock.js";
import type { FaultCommand, FaultProfile } from "./fault-run.js";
import { Workers } from "./workers.js";

const COMMON = `  --seed S           what to repeat (from the clock)
  --json FILE        the report and the whole history as JSON`;
const RECOVERY_MS = 60_000;
const NODES = 5;
const clientsOf = (values: Values, usual: number): number => numberFor(values, "clients", { fallback: usual, least: 2, most: 64 });

/** Servers beside the members, where these change. */
const SPARES = 2;
/** How long the control goes on until an update is overwritten. */
const CONTROL_MS = 60_000;

export const systemFaults: FaultCommand = {
  usage: `npm run faults -- [options]          the whole system: clients, lock, gateways, Postgres
  --minutes M        faults for so long (5)
  --clients N        client processes (10)
  --short            about two minutes with everything
  --members          members of the lock's fleet are replaced, added and removed meanwhile
  --control          the same without the fence: must be found wanting
${COMMON}
npm run faults -- --ha [options]     three Postgres servers under Patroni; --ha --help
npm run faults -- --citus [options]  a Citus cluster whose servers break; --citus --help
npm run faults -- --lock [options]   the lock alone; --lock --help shows its options
npm run faults -- --sim [options]    the lock's code in a simulated world`,
  profile: ({ seed, isControl }, values) => {
    const clients = clientsOf(values, 10);
    const durationMs = minutesOf(values, shortOr(values, "minutes") ? 1.5 : 5) * 60_000;
    const changesMembers = values.members === true;
    const servers = changesMembers ? NODES + SPARES : NODES;
    return {
      ...documented,
      plan: systemPlan(durationMs, clients, servers),
      ...(changesMembers ? { founders: NODES } : {}),
      limit: Number.POSITIVE_INFINITY,
      start: async (closers, folder) => {
        const store = closers.use(await PairStore.start());
        return { ...(await startSystem({ seed, clients, isFenced: !isControl, servers, listed: NODES, folder, store }, closers)), store };
      },
      traffic: async ({ workers: { tally } }, done) => {
        await Promise.race([sleep(durationMs, undefined, { ref: false }), done]);
        // On a busy machine nothing may be overwritten yet, and the control would show nothing.
        const giveUpAt = performance.now() + CONTROL_MS;
        while (isControl && tally.overwrote === 0 && performance.now() < giveUpAt) await sleep(500, undefined, { ref: false });
        return undefined;
      },
    };
  },
  expected: "lose updates",
  isFoundWanting: (violations) => violations.some(({ lostUpdates = 0 }) => lostUpdates > 0),
};

const documented = { ...documentTimes, recoveryMs: RECOVERY_MS };

export function systemPlan(durationMs: number, clients: number, nodes = NODES): Plan {
  return {
    durationMs,
    nodes,
    gateways: GATEWAYS,
    clients,
    weights: {
      "node killed": 3,
      "node paused": 3,
      "nodes wiped": 5,
      "node clock shifted": 1,
      "link to nodes": 6,
      "link of gateway to nodes": 2,
      "link to gateway": 5,
      "link of gateway to store": 4,
      "link of guarded table to store": 1,
      "link to standby": 1,
      "gateway killed": 1,
      "gateway paused": 2,
      "gateway drained": 1,
      "store crashed": 1,
      "store restarted": 0.5,
      "store paused": 1,
      "client stopped": 4,
      "client killed": 0.7,
    },
    paceMs: 260,
    calm: { probability: 0.05, ms: 2_500 },
    lastsMs: { least: 20, most: 500, long: 1_500 },
    slowMs: { least: 40, most: 40 },
    beyondQuorum: 0,
    failoverAt: 0.55,
  };
}

/** Three of the lock's nodes are enough: the store has faults of its own, and clients are stopped now and then. */
function storeProfile(values: Values, start: FaultProfile["start"], clients: number): FaultProfile {
  const plan: Plan = {
    durationMs: 3_600_000, // Longer than any run.
    nodes: 3,
    gateways: 0,
    clients,
    weights: { "client stopped": 1 },
    paceMs: 3_000,
    calm: { probability: 0, ms: 0 },
    lastsMs: { least: 20, most: 500 },
    slowMs: { least: 40, most: 40 },
    beyondQuorum: 0,
  };
  const rounds = numberFor(values, "rounds", { fallback: shortOr(values, "rounds") ? 1 : 3, least: 1, most: 1_000 });
  return { ...documented, plan, limit: 1, rounds, start, traffic: async () => undefined };
}

const ofStore = { isFenced: true, servers: 3, listed: 3 };

export const haFaults: FaultCommand = {
  usage: `npm run faults -- --ha [options]     three Postgres servers under Patroni that fail over
  --rounds N         how often each fault of Patroni comes (3)
  --short            four of them once: about two minutes with everything
  --clients N        client processes (6)
  --control          asynchronous replication: must lose acknowledged writes
${COMMON}
Needs the Debian packages patroni, etcd-server, haproxy and postgresql; exit code 3 where they are missing.`,
  profile: ({ seed, isControl }, values) => {
    const clients = clientsOf(values, 6);
    const start: FaultProfile["start"] = async (closers, folder) => {
      const { cluster, store } = await startPatroniStore();
      closers.use(store);
      if (isControl) await cluster.replicateAsynchronously();
      const env: Record<string, string> = isControl ? { PALISADE_DURABILITY: "local" } : {};
      const system = await startSystem({ ...ofStore, seed, clients, folder, store, env }, closers);
      // In the control what was lost is lost, but the gateways notice, and write nothing before the fences are raised.
      const failedOver = (): Promise<void> => recover(cluster.url(), system.fleet.urls);
      const storeFaults = isControl
        ? patroniFaults(cluster, "control", failedOver)
        : patroniFaults(cluster, values.short === true ? "brief" : "all");
      return { ...system, storeFaults };
    };
    return storeProfile(values, start, clients);
  },
  expected: "lose acknowledged writes",
  isFoundWanting: (violations) => violations.some(({ what }) => what.endsWith("was answered with success and is not stored")),
};

/** As an operator would, once a gateway says that the database may lack fences. */
async function recover(databaseUrl: string, redisUrls: readonly string[]): Promise<void> {
  const env = { DATABASE_URL: databaseUrl, PALISADE_REDIS_URLS: redisUrls.join(",") };
  const child = startNode(gatewayProgram, ["recover", "--reason", "an asynchronous standby took over"], { env, name: "recovery" });
  const { code } = await child.waitForExit();
  if (code !== 0) throw new Error(child.howItEnded());
}

export const citusClusterFaults: FaultCommand = {
  usage: `npm run faults -- --citus [options]  a Citus cluster whose servers break
  --rounds N         how often each fault comes (3)
  --short            each once: about a minute with everything
  --clients N        client processes (6)
${COMMON}
Needs PALISADE_TEST_CITUS or a Docker engine, as npm run citus does.`,
  profile: ({ seed }, values) => {
    const clients = clientsOf(values, 6);
    const start: FaultProfile["start"] = async (closers, folder) => {
      const { cluster, store } = await startCitusStore();
      closers.use(store);
      const system = await startSystem({ ...ofStore, seed, clients, folder, store, env: { PALISADE_DURABILITY: "local" } }, closers);
      return { ...system, storeFaults: citusFaults(cluster) };
    };
    return storeProfile(values, start, clients);
  },
  expected: "be found wanting",
  isFoundWanting: () => false,
};

/** If no client gets a lease for so long, with faults of less than a second, the lock is stuck. */
const STUCK_MS = 30_000;

export const lockFaults: FaultCommand = {
  usage: `npm run faults -- --lock [options]   the lock alone: one resource, many processes, a fleet that breaks
  --processes N      client processes (16)
  --leases K         leases of each, all on one resource (1000)
  --minutes M        no new leases after so long (30)
  --short            a bounded run: 60 leases each, at most 45 s with everything
  --control          a lock that has neither seals nor quarantine: must be found wanting
${COMMON}`,
  profile: ({ seed, isControl }, values) => {
    const isShort = values.short === true;
    const processes = numberFor(values, "processes", { fallback: 16, least: 1, most: 1_000 });
    const leases = numberFor(values, "leases", { fallback: isShort ? 60 : 1_000, least: 1, most: 1_000_000 });
    const limitMs = minutesOf(values, isShort ? 0.45 : 30) * 60_000;
    const { maxTtlMs } = lockTimes;
    return {
      plan: {
        durationMs: limitMs,
        nodes: NODES,
        gateways: 0,
        clients: processes,
        weights: { "node killed": 0.75, "nodes wiped": 1.5, "node paused": 0.75, "link to nodes": 3, "client stopped": 1 },
        paceMs: 120,
        calm: { probability: 0.06, ms: 1_500 },
        lastsMs: { least: 10, most: 300 },
        lastsMsOf: {
          // Longer than the longest ttl now and then: a paused node misses whole leases.
          "node paused": { least: 10, most: 900 },
          "link to nodes": { least: 10, most: 500 },
          // Beyond the end of the lease.
          "client stopped": { least: 0, most: 300 },
        },
        slowMs: { least: 2, most: 60 },
        beyondQuorum: 0.15,
      },
      ttlMs: maxTtlMs,
      maxTtlMs,
      // A wiped node votes again after the longest ttl, and a client's last wait ends after 3 s.
      recoveryMs: 10_000,
      limit: 4,
      votesAtOnce: isControl,
      watched: RESOURCE,
      start: async (closers, folder) => {
        const fleet = closers.use(await RedisFleet.start({ nodes: NODES, appendfsync: "always" }));
        return await startLock(fleet, { seed, isControl, processes, leases, folder }, closers);
      },
      traffic: ({ workers }, done) => untilDone(() => workers.tally.done, done, limitMs),
    };
  },
  expected: "break a promise",
  isFoundWanting: (violations) => violations.length > 0,
};

interface LockClients {
  readonly seed: string;
  readonly isControl: boolean;
  readonly processes: number;
  readonly leases: number;
  readonly folder: string;
}

async function startLock(
  fleet: RedisFleet,
  { seed, isControl, processes, leases, folder }: LockClients,
  closers: Closers,
): Promise<Environment> {
  const links = await Promise.all(Array.from({ length: processes }, () => fleet.anotherWay()));
  // Each long hold keeps all others waiting: at most a few per second in a long run.
  const longHolds = Math.ceil(Math.min((processes * leases) / 20, 160) / processes);
  const lock = isControl ? ("unsealed" as const) : ("palisade" as const);
  const places = links.map(({ urls: redisUrls }, slot) => {
    const of = { name: `c${slot}.0`, client: clientNumber(slot, 0), journal: `${folder}/${journalName(`c${slot}`, 0)}` };
    const orders = { traffic: "one lock" as const, ...of, seed, redisUrls, lock, leases, longHolds, reportEveryMs: 200 };
    return { name: `c${slot}`, orders: () => orders };
  });
  const workers = closers.use(new Workers(places));
  const clientLinks = links.map((nodes) => ({ nodes, gateways: [] }));
  return { servers: fleet.description, fleet, gateways: [], gatewayLinks: [], clientLinks, workers };
}

/** Until all are done or the time is over; with a sentence if no client gets a lease. */
async function untilDone(leases: () => number, done: Promise<unknown>, limitMs: number): Promise<string | undefined> {
  const startedAt = performance.now();
  let [before, movedAt] = [0, startedAt];
  const isDone = done.then(() => true);
  while (performance.now() - startedAt < limitMs) {
    if (await Promise.race([isDone, sleep(500, false)])) return undefined;
    if (leases() > before) [before, movedAt] = [leases(), performance.now()];
    if (performance.now() - movedAt > STUCK_MS) return `no client got a lease for ${STUCK_MS} ms`;
  }
  return undefined;
}

// `npm run faults -- --ha`: the whole system while its store, three Postgres servers under Patroni,
// fails over again and again.
import { setTimeout as sleep } from "node:timers/promises";
import { MissingPrograms, resolvePatroniPrograms, startChild } from "@palisade/testkit";
import type { FaultLog } from "../faults/fault-log.js";
import { injectPatroniFaults, type PatroniFault, patroniFaults } from "../faults/patroni.js";
import { type Command, REPORT_USAGE } from "../harness/command.js";
import type { Closers, Signals } from "../harness/run.js";
import type { ChangeStream, Entry } from "../history/history.js";
import { collectFenced } from "../servers/collect.js";
import type { Environment } from "../servers/environment.js";
import { type Gateway, gatewayProgram, type Key, newKey } from "../servers/gateway.js";
import { PatroniStore } from "../servers/patroni-store.js";
import { startSystem } from "../servers/system.js";
import { ChangeReader } from "../traffic/change-reader.js";
import { intruded } from "../traffic/intruder.js";
import { rows } from "../traffic/read-modify-write.js";
import { faultCommand } from "./fault-command.js";
import type { FaultProfile } from "./fault-run.js";
import { NODES, readStoreArguments, type StoreAsked, storeProfile } from "./store-faults.js";

const usage = `npm run faults -- --ha [options]     three Postgres servers under Patroni that fail over
  --rounds N         how often each fault of Patroni comes (3)
  --short            four of them once: about two minutes with everything
  --seed S           what to repeat (from the clock)
  --clients N        client processes (6)
  --control          asynchronous replication: must lose acknowledged writes
  --json FILE        the report and the whole history as JSON
${REPORT_USAGE}
Needs the Debian packages patroni, etcd-server, haproxy and postgresql; exit code 3 where they are missing.`;

/** Documents behind the gateway. */
const PREFIX = "ledgers/";
const TOLD_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 100;
/** Exit code: nothing was run, because programs are missing. */
const MISSING = 3;
const ofControl: readonly PatroniFault[] = ["cut off from standbys, then killed"];
/** Without two that are part of the last one, each of which waits for Patroni's ttl. */
const ofShort: readonly PatroniFault[] = ["switchover", "Postgres killed", "cut off from etcd", "cut off from standbys, then killed"];

const judgedCommand = faultCommand<StoreAsked>({
  usage,
  texts: ["rounds", "seed", "clients"],
  flags: ["short", "control"],
  read: readStoreArguments,
  profile: haProfile,
  repeat: ({ seed, isControl, isShort, clients, rounds }) =>
    `npm run faults -- --ha ${isShort ? "--short" : `--rounds ${rounds}`} --clients ${clients} --seed ${seed}${isControl ? " --control" : ""}`,
  isFoundWanting: (violations) => violations.some(({ what }) => what.endsWith("was answered with success and is not stored")),
  expected: "lose acknowledged writes",
});

export const haCommand: Command<StoreAsked> = {
  ...judgedCommand,
  perform: async (asked) => {
    try {
      await resolvePatroniPrograms();
    } catch (error) {
      if (!(error instanceof MissingPrograms)) throw error;
      console.error(error.message);
      return MISSING;
    }
    return await judgedCommand.perform(asked);
  },
};

function haProfile(asked: StoreAsked): FaultProfile {
  const { seed, isShort, isControl, clients, rounds } = asked;
  let store: PatroniStore | undefined;
  let readers: readonly ChangeReader[] = [];
  return storeProfile(asked, {
    accounted: patroniFaults,
    start: async (closers, folder) => {
      store = closers.use(await PatroniStore.start());
      const reader = newKey("reader");
      const environment = await start({ seed, isControl, clients, folder, store, keys: [reader] }, closers);
      readers = await Promise.all(environment.gateways.map((gateway) => readChanges(gateway, reader, closers)));
      return environment;
    },
    besides: async (environment, log, signals) => {
      const done = new AbortController();
      const watching = store?.watch(log.stored, AbortSignal.any([done.signal, signals.over]));
      if (store !== undefined) await failOver({ store, environment, log, seed, isShort, isControl, rounds }, signals);
      done.abort();
      await watching;
    },
    collect: async () => {
      if (store === undefined) return {};
      const stored = await collectFenced(store, rows, intruded);
      const streams = await Promise.all(readers.map((reader, index) => streamOf(reader, `gateway ${index + 1}`, stored.entries)));
      return { ...stored, streams };
    },
  });
}

async function readChanges(gateway: Gateway, { secret: apiKey }: Key, closers: Closers): Promise<ChangeReader> {
  const { url } = await gateway.link();
  return closers.use(new ChangeReader({ url, apiKey, prefix: PREFIX }));
}

/** When it was told as much as is stored, or has had time enough for that. */
async function streamOf(reader: ChangeReader, name: string, entries: readonly Entry[]): Promise<ChangeStream> {
  const stored = entries.filter(({ resource, op }) => resource.startsWith(PREFIX) && op !== "guarded").length;
  for (const giveUpAt = performance.now() + TOLD_WITHIN_MS; reader.changes.length < stored && performance.now() < giveUpAt; )
    await sleep(LOOK_EVERY_MS);
  await reader[Symbol.asyncDispose]();
  return { reader: name, prefix: PREFIX, changes: reader.changes, failure: reader.failure?.message };
}

interface Start extends Pick<StoreAsked, "seed" | "isControl" | "clients"> {
  readonly keys: readonly Key[];
  readonly folder: string;
  readonly store: PatroniStore;
}

async function start({ isControl, store, ...asked }: Start, closers: Closers): Promise<Environment> {
  if (isControl) await store.cluster.replicateAsynchronously();
  const env: Record<string, string> = isControl ? { PALISADE_DURABILITY: "local" } : {};
  const system = await startSystem({ ...asked, isFenced: true, servers: NODES, listed: NODES, store, env }, closers);
  return { ...system, store: undefined, servers: `${system.servers}; ${store.description}; ${system.gateways.length} gateways` };
}

interface FailingOver extends Pick<StoreAsked, "seed" | "isShort" | "isControl" | "rounds"> {
  readonly store: PatroniStore;
  readonly environment: Environment;
  readonly log: FaultLog;
}

async function failOver(failing: FailingOver, signals: Signals): Promise<void> {
  const { store, environment, log, seed, isShort, isControl, rounds } = failing;
  const { gateways, fleet } = environment;
  const common = { cluster: store.cluster, gateways, log, seed, rounds };
  if (!isControl) return await injectPatroniFaults({ ...common, kinds: isShort ? ofShort : patroniFaults }, signals);
  // What was lost is lost, but the gateways notice, and write nothing before the fences are raised.
  const failedOver = (): Promise<void> => recover(store.cluster.url(), fleet.urls);
  await injectPatroniFaults({ ...common, kinds: ofControl, failedOver }, signals);
}

/** As an operator would, once a gateway says that the database may lack fences. */
async function recover(databaseUrl: string, redisUrls: readonly string[]): Promise<void> {
  const child = startChild({
    command: process.execPath,
    args: [gatewayProgram, "recover", "--reason", "an asynchronous standby took over"],
    env: { DATABASE_URL: databaseUrl, PALISADE_REDIS_URLS: redisUrls.join(",") },
    name: "recovery",
  });
  const { code } = await child.waitForExit();
  if (code !== 0) throw new Error(child.howItEnded());
}

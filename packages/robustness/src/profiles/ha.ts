// `npm run faults -- --ha`: the whole system while its store, three Postgres servers under Patroni,
// fails over again and again.
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MissingPrograms, resolvePatroniPrograms, startChild } from "@palisade/testkit";
import type { FaultLog } from "../faults/fault-log.js";
import { injectPatroniFaults, type PatroniFault, patroniFaults } from "../faults/patroni.js";
import { type Command, REPORT_USAGE, type ReportFiles, reportFiles, seedOf, type Values, wholeNumber } from "../harness/command.js";
import type { Closers, Signals } from "../harness/run.js";
import type { ChangeStream, Entry } from "../history/history.js";
import { collectFenced } from "../servers/collect.js";
import type { Environment } from "../servers/environment.js";
import { type Gateway, type Key, newKey } from "../servers/gateway.js";
import { readmitted } from "../servers/node-state.js";
import { PatroniStore } from "../servers/patroni-store.js";
import { startSystem } from "../servers/system.js";
import { ChangeReader } from "../traffic/change-reader.js";
import { intruded } from "../traffic/intruder.js";
import { documentTimes, rows } from "../traffic/read-modify-write.js";
import { type FaultProfile, faultCommand } from "./fault-run.js";

const usage = `npm run faults -- --ha [options]     three Postgres servers under Patroni that fail over
  --rounds N         how often each fault of Patroni comes (3)
  --short            four of them once: about two minutes with everything
  --seed S           what to repeat (from the clock)
  --clients N        client processes (6)
  --control          asynchronous replication: must lose acknowledged writes
  --json FILE        the report and the whole history as JSON
${REPORT_USAGE}
Needs the Debian packages patroni, etcd-server, haproxy and postgresql; exit code 3 where they are missing.`;

export interface HaAsked extends ReportFiles {
  readonly seed: string;
  readonly isShort: boolean;
  readonly isControl: boolean;
  readonly clients: number;
  readonly rounds: number;
}

const NODES = 3;
const RECOVERY_MS = 60_000;
/** Documents behind the gateway. */
const PREFIX = "ledgers/";
const TOLD_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 100;
/** Exit code: nothing was run, because programs are missing. */
const MISSING = 3;
/** Longer than any run: clients are stopped until its end. */
const PLANNED_MS = 3_600_000;
const ofControl: readonly PatroniFault[] = ["cut off from standbys, then killed"];
/** Without two that are part of the last one, each of which waits for Patroni's ttl. */
const ofShort: readonly PatroniFault[] = ["switchover", "Postgres killed", "cut off from etcd", "cut off from standbys, then killed"];

export function readHaArguments(values: Values): HaAsked {
  const isShort = values.has("short");
  if (isShort && values.text.rounds !== undefined)
    throw new RangeError("--short and --rounds are two answers to one question: give one of them.");
  return {
    seed: seedOf(values),
    isShort,
    isControl: values.has("control"),
    clients: wholeNumber(values, "clients", { fallback: 6, least: 2, most: 64 }),
    rounds: wholeNumber(values, "rounds", { fallback: isShort ? 1 : 3, least: 1, most: 1_000 }),
    ...reportFiles(values),
  };
}

const judgedCommand = faultCommand<HaAsked>({
  usage,
  texts: ["rounds", "seed", "clients"],
  flags: ["short", "control"],
  read: readHaArguments,
  profile: haProfile,
  repeat: ({ seed, isControl, isShort, clients, rounds }) =>
    `npm run faults -- --ha ${isShort ? "--short" : `--rounds ${rounds}`} --clients ${clients} --seed ${seed}${isControl ? " --control" : ""}`,
  isFoundWanting: (violations) => violations.some(({ what }) => what.endsWith("was answered with success and is not stored")),
  expected: "lose acknowledged writes",
});

export const haCommand: Command<HaAsked> = {
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

function haProfile({ seed, isShort, isControl, clients, rounds }: HaAsked): FaultProfile {
  let store: PatroniStore | undefined;
  let readers: readonly ChangeReader[] = [];
  const done = new AbortController();
  return {
    seed,
    plan: {
      ...{ durationMs: PLANNED_MS, nodes: NODES, gateways: 0, clients },
      weights: { "client stopped": 1 },
      ...{ paceMs: 3_000, calm: { probability: 0, ms: 0 }, lastsMs: { least: 20, most: 500 } },
      ...{ slowMs: { least: 40, most: 40 }, beyondQuorum: 0 },
    },
    ...{ ttlMs: documentTimes.ttlMs, maxTtlMs: documentTimes.maxTtlMs, recoveryMs: RECOVERY_MS, limit: 1 },
    ...{ ambushRestMs: undefined, killKeepsMemory: true, readmitted, accounted: patroniFaults },
    start: async (closers, folder) => {
      store = closers.use(await PatroniStore.start());
      const reader = newKey("reader");
      const environment = await start({ seed, isControl, clients, folder, store, keys: [reader] }, closers);
      readers = await Promise.all(environment.gateways.map((gateway) => readChanges(gateway, reader, closers)));
      return environment;
    },
    besides: async (environment, log, signals) => {
      const watching = store?.watch(log.stored, AbortSignal.any([done.signal, signals.over]));
      if (store !== undefined) await failOver({ store, environment, log, seed, isShort, isControl, rounds }, signals);
      done.abort();
      await watching;
    },
    traffic: async (_, ended) => void (await Promise.race([once(done.signal, "abort"), ended])),
    collect: async () => {
      if (store === undefined) return {};
      const stored = await collectFenced(store, rows, intruded);
      const streams = await Promise.all(readers.map((reader, index) => streamOf(reader, `gateway ${index + 1}`, stored.entries)));
      return { ...stored, streams };
    },
  };
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

interface Start extends Pick<HaAsked, "seed" | "isControl" | "clients"> {
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

interface FailingOver extends Pick<HaAsked, "seed" | "isShort" | "isControl" | "rounds"> {
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
  const program = join(createRequire(import.meta.url).resolve("@palisade/gateway/package.json"), "..", "dist", "main.js");
  const child = startChild({
    command: process.execPath,
    args: [program, "recover", "--reason", "an asynchronous standby took over"],
    env: { DATABASE_URL: databaseUrl, PALISADE_REDIS_URLS: redisUrls.join(",") },
    name: "recovery",
  });
  const { code } = await child.waitForExit();
  if (code !== 0) throw new Error(child.howItEnded());
}

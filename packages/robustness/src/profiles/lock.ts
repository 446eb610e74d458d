// `npm run faults -- --lock`: processes acquire one resource while nodes, links, clients break.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, nodesOrFleets } from "@palisade/lock";
import { type AppendFsync, RedisFleet } from "@palisade/testkit";
import { FleetChanges } from "../faults/fleet-changes.js";
import {
  type Command,
  oneOf,
  positive,
  REPORT_USAGE,
  type ReportFiles,
  reportFiles,
  seedOf,
  type Values,
  wholeNumber,
} from "../harness/command.js";
import type { Closers } from "../harness/run.js";
import { Workers } from "../harness/workers.js";
import { clientNumber, journalName } from "../servers/collect.js";
import type { ClientLinks, Environment } from "../servers/environment.js";
import { readmitted } from "../servers/node-state.js";
import { chanceOf } from "../traffic/chance.js";
import type { LockOrders } from "../traffic/messages.js";
import { lockTimes, RESOURCE } from "../traffic/one-lock.js";
import { faultCommand } from "./fault-command.js";
import type { FaultProfile } from "./fault-run.js";

const usage = `npm run faults -- --lock [options]   the lock alone: one resource, many processes, a fleet that breaks
  --processes N      client processes (16)
  --leases K         leases of each, all on one resource (1000)
  --minutes M        no new leases after so long (30)
  --seed S           what to repeat (from the clock)
  --short            a bounded run: 60 leases each, at most 45 s with everything
  --appendfsync F    always (kills keep everything), everysec or no (kills lose memory, too)
  --fleets           two fleets, of which one is removed and added again meanwhile
  --control          a lock that has neither seals nor quarantine; with --fleets, processes
                     that choose a fleet by themselves: must be found wanting
  --json FILE        the report and the whole history as JSON
${REPORT_USAGE}`;

interface LockAsked extends ReportFiles {
  readonly seed: string;
  readonly isControl: boolean;
  readonly hasFleets: boolean;
  readonly processes: number;
  readonly leases: number;
  readonly limitMs: number;
  readonly appendfsync: AppendFsync;
}

/** If no client gets a lease for so long, with faults of less than a second, the lock is stuck. */
const STUCK_MS = 30_000;
/** A wiped node votes again after the longest ttl, and a client's last wait ends after 3 s. */
const RECOVERY_MS = 10_000;
const FOUNDED_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 500;
const REPORT_EVERY_MS = 200;
const MOST = Number.MAX_SAFE_INTEGER;
/** Of each fleet. */
const NODES = 5;

export function readLockArguments(values: Values): LockAsked {
  const isShort = values.has("short");
  return {
    seed: seedOf(values),
    isControl: values.has("control"),
    hasFleets: values.has("fleets"),
    processes: wholeNumber(values, "processes", { fallback: 16, least: 1, most: MOST }),
    leases: wholeNumber(values, "leases", { fallback: isShort ? 60 : 1_000, least: 1, most: MOST }),
    limitMs: positive(values, "minutes", isShort ? 0.45 : 30) * 60_000,
    appendfsync: oneOf("appendfsync", values.text.appendfsync ?? "always", ["always", "everysec", "no"]),
    ...reportFiles(values),
  };
}

export const lockCommand: Command<LockAsked> = faultCommand({
  usage,
  texts: ["processes", "leases", "minutes", "seed", "appendfsync"],
  flags: ["short", "control", "fleets"],
  read: readLockArguments,
  profile: lockProfile,
  repeat: ({ seed, isControl, hasFleets, processes, leases, limitMs, appendfsync }) =>
    `npm run faults -- --lock --processes ${processes} --leases ${leases} --minutes ${limitMs / 60_000} --appendfsync ${appendfsync} --seed ${seed}${isControl ? " --control" : ""}${hasFleets ? " --fleets" : ""}`,
  isFoundWanting: (violations) => violations.length > 0,
  expected: "break a promise",
});

export function lockProfile(asked: LockAsked): FaultProfile {
  const { seed, isControl, hasFleets, processes, limitMs } = asked;
  const { maxTtlMs } = lockTimes;
  return {
    seed,
    plan: {
      durationMs: limitMs,
      nodes: serversFor(asked),
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
    recoveryMs: RECOVERY_MS,
    limit: 4,
    // Its traps are for the nodes of one fleet.
    ambushRestMs: isControl || hasFleets ? undefined : 1_000,
    killKeepsMemory: asked.appendfsync === "always",
    watched: RESOURCE,
    // A node of the control votes as soon as it is up.
    readmitted: (node, giveUp) => (isControl && !hasFleets ? sleep(maxTtlMs, true) : readmitted(node, giveUp)),
    start: (closers, folder) => start(asked, closers, folder),
    ...(hasFleets && !isControl ? { besides: changeFleets(seed) } : {}),
    traffic: ({ workers }, done) => untilDone(() => workers.tally.done, done, limitMs),
    collect: async () => ({}),
  };
}

async function start(asked: LockAsked, closers: Closers, folder: string): Promise<Environment> {
  const { processes, appendfsync } = asked;
  const fleet = closers.use(await RedisFleet.start({ nodes: serversFor(asked), appendfsync }));
  const { urls } = fleet;
  const toFound = asked.isControl ? [urls.slice(0, NODES), urls.slice(NODES)] : [named(urls)];
  if (asked.hasFleets) await Promise.all(toFound.map(found));
  const links = await Promise.all(Array.from({ length: processes }, () => fleet.anotherWay()));
  const clientLinks = links.map((nodes): ClientLinks => ({ nodes, gateways: [] }));
  const places = links.map(({ urls }, slot) => {
    const redisUrls = urlsFor(asked, slot, urls);
    return { name: `c${slot}`, orders: () => ({ ...ordersFor(asked, slot, folder), redisUrls, reportEveryMs: REPORT_EVERY_MS }) };
  });
  const workers = closers.use(new Workers(places));
  return { servers: fleet.description, fleet, store: undefined, gateways: [], gatewayLinks: [], clientLinks, workers };
}

/** Only processes with the same addresses found fleets together: each client has its own. */
async function found(urls: readonly string[]): Promise<void> {
  await using founder = createLocker({
    ...nodesOrFleets(urls),
    ttlMs: lockTimes.ttlMs,
    maxTtlMs: lockTimes.maxTtlMs,
    label: "founder",
    waitMs: FOUNDED_WITHIN_MS,
  });
  await founder.ready();
}

function serversFor({ hasFleets }: Pick<LockAsked, "hasFleets">): number {
  return hasFleets ? 2 * NODES : NODES;
}

/** Of the control with fleets, half of the processes take one for the home and half the other. */
function urlsFor({ hasFleets, isControl }: LockAsked, slot: number, urls: readonly string[]): readonly string[] {
  if (!hasFleets) return urls;
  return isControl ? urls.slice((slot % 2) * NODES).slice(0, NODES) : named(urls);
}

function named(urls: readonly string[]): readonly string[] {
  return urls.map((url, index) => `${index < NODES ? "east" : "west"}=${url}`);
}

function changeFleets(seed: string): NonNullable<FaultProfile["besides"]> {
  return async ({ fleet }, log, { over, giveUp }) => {
    const { urls } = await fleet.anotherWay();
    const chance = chanceOf(seed, "fleets");
    await new FleetChanges({ urls: named(urls), resource: RESOURCE, log, chance, maxTtlMs: lockTimes.maxTtlMs }).goOn(over, giveUp);
  };
}

/** Until all are done or the time is over; with a sentence if no client gets a lease. */
async function untilDone(leases: () => number, done: Promise<unknown>, limitMs: number): Promise<string | undefined> {
  const startedAt = performance.now();
  let [before, movedAt] = [0, startedAt];
  const isDone = done.then(() => true);
  while (performance.now() - startedAt < limitMs) {
    if (await Promise.race([isDone, sleep(LOOK_EVERY_MS, false)])) return undefined;
    if (leases() > before) [before, movedAt] = [leases(), performance.now()];
    if (performance.now() - movedAt > STUCK_MS) return `no client got a lease for ${STUCK_MS} ms`;
  }
  return undefined;
}

function ordersFor(
  { seed, isControl, hasFleets, leases, processes }: LockAsked,
  slot: number,
  folder: string,
): Omit<LockOrders, "redisUrls"> {
  const name = `c${slot}`;
  // Each long hold keeps all others waiting: at most a few per second in a long run.
  const longHolds = Math.ceil(Math.min((processes * leases) / 20, 160) / processes);
  const journal = `${folder}/${journalName(name, 0)}`;
  const lock = isControl && !hasFleets ? "unsealed" : "palisade";
  return { traffic: "one lock", name: `${name}.0`, seed, client: clientNumber(slot, 0), journal, lock, leases, longHolds };
}

// `npm run faults`: clients read, modify and write documents through gateways under the lock while
// nodes, gateways, Postgres, links and clients break.
import { setTimeout as sleep } from "node:timers/promises";
import type { Plan } from "../faults/schedule.js";
import {
  type Command,
  positive,
  REPORT_USAGE,
  type ReportFiles,
  reportFiles,
  seedOf,
  shortOr,
  type Values,
  wholeNumber,
} from "../harness/command.js";
import type { Closers } from "../harness/run.js";
import type { Workers } from "../harness/workers.js";
import { collectFenced, collectUnfenced } from "../servers/collect.js";
import type { Environment } from "../servers/environment.js";
import { readmitted } from "../servers/node-state.js";
import { Store } from "../servers/store.js";
import { GATEWAYS, startSystem } from "../servers/system.js";
import { intruded } from "../traffic/intruder.js";
import { documentTimes, rows } from "../traffic/read-modify-write.js";
import { faultCommand } from "./fault-command.js";
import type { FaultProfile } from "./fault-run.js";

const usage = `npm run faults -- [options]          the whole system: clients, lock, gateways, Postgres
  --minutes M        faults for so long (5)
  --seed S           what to repeat (from the clock)
  --clients N        client processes (10)
  --short            about two minutes with everything
  --members          members of the lock's fleet are replaced, added and removed meanwhile
  --control          the same without the fence: must be found wanting
  --json FILE        the report and the whole history as JSON
${REPORT_USAGE}
npm run faults -- --ha [options]     three Postgres servers under Patroni; --ha --help
npm run faults -- --citus [options]  a Citus cluster whose servers break; --citus --help
npm run faults -- --lock [options]   the lock alone; --lock --help shows its options
npm run faults -- --change           a picture of members that change; --change --help
npm run faults -- --sim [options]    the lock's code in a simulated world`;

interface SystemAsked extends ReportFiles {
  readonly seed: string;
  readonly isControl: boolean;
  readonly changesMembers: boolean;
  readonly clients: number;
  readonly durationMs: number;
}

const SHORT_MINUTES = 1.5;
const NODES = 5;
/** Servers beside the members, where these change. */
const SPARES = 2;
const REPORT_EVERY_MS = 500;
const RECOVERY_MS = 60_000;
/** How long the control goes on until an update is overwritten. */
const CONTROL_MS = 60_000;

function readSystemArguments(values: Values): SystemAsked {
  const isShort = shortOr(values, "minutes");
  return {
    seed: seedOf(values),
    isControl: values.has("control"),
    changesMembers: values.has("members"),
    clients: wholeNumber(values, "clients", { fallback: 10, least: 2, most: 64 }),
    durationMs: positive(values, "minutes", isShort ? SHORT_MINUTES : 5) * 60_000,
    ...reportFiles(values),
  };
}

export const systemCommand: Command<SystemAsked> = faultCommand({
  usage,
  texts: ["minutes", "seed", "clients"],
  flags: ["short", "control", "members"],
  read: readSystemArguments,
  profile: systemProfile,
  repeat: ({ seed, isControl, changesMembers, clients, durationMs }) =>
    `npm run faults -- --minutes ${durationMs / 60_000} --clients ${clients} --seed ${seed}${isControl ? " --control" : ""}${changesMembers ? " --members" : ""}`,
  isFoundWanting: (violations) => violations.some(({ lostUpdates = 0 }) => lostUpdates > 0),
  expected: "lose updates",
});

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

function systemProfile(asked: SystemAsked): FaultProfile {
  const { seed, isControl, changesMembers, clients, durationMs } = asked;
  return {
    seed,
    plan: systemPlan(durationMs, clients, serversFor(asked)),
    ...(changesMembers ? { founders: NODES } : {}),
    ttlMs: documentTimes.ttlMs,
    maxTtlMs: documentTimes.maxTtlMs,
    recoveryMs: RECOVERY_MS,
    limit: Number.POSITIVE_INFINITY,
    // Its traps need to know who is a member.
    ambushRestMs: isControl || changesMembers ? undefined : 4_000,
    killKeepsMemory: true,
    readmitted,
    start: (closers, folder) => start(asked, closers, folder),
    traffic: async ({ workers }, done) => {
      await Promise.race([sleep(durationMs, undefined, { ref: false }), done]);
      if (isControl) await untilOverwritten(workers);
      return undefined;
    },
    collect: async ({ store }) => {
      if (store === undefined) return {};
      return isControl ? await collectUnfenced(store) : await collectFenced(store, rows, intruded);
    },
  };
}

/** On a busy machine nothing may be overwritten yet, and the control would show nothing. */
async function untilOverwritten({ tally }: Workers): Promise<void> {
  for (const giveUpAt = performance.now() + CONTROL_MS; tally.overwrote === 0 && performance.now() < giveUpAt; )
    await sleep(REPORT_EVERY_MS, undefined, { ref: false });
}

function serversFor({ changesMembers }: SystemAsked): number {
  return changesMembers ? NODES + SPARES : NODES;
}

async function start(asked: SystemAsked, closers: Closers, folder: string): Promise<Environment> {
  const { seed, clients, isControl } = asked;
  const store = closers.use(await Store.start());
  const options = { seed, clients, isFenced: !isControl, servers: serversFor(asked), listed: NODES, folder, store };
  const system = await startSystem(options, closers);
  const gateways = system.gateways.length;
  return { ...system, store, servers: `${system.servers}; ${store.description}, a synchronous pair; ${gateways} gateways` };
}

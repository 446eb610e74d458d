// The soak's servers, clients and course: clients work for long while ordinary disturbances come in
// turn and rows of values are taken. Retentions and intervals are shortened, so that half an hour
// shows the level at which things stay.
import { appendFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { PostgresServer, RedisFleet, withClient } from "@palisade/testkit";
import type { Row } from "../checkers/curves.js";
import type { ReportFiles } from "../command.js";
import { waited } from "../history.js";
import { Gateway } from "../servers/gateway.js";
import { Sampler, type SoakEnvironment } from "../servers/sampler.js";
import { type Filled, fill } from "../traffic/load.js";
import type { Leak } from "../traffic/messages.js";
import type { SelfReading } from "../traffic/probe.js";
import { Closers, run } from "./run.js";
import { Workers } from "./workers.js";

export interface SoakAsked extends ReportFiles {
  readonly minutes: number;
  readonly perSecond: number;
  readonly seed: string;
  readonly clients: number;
  /** Of client 1, in the control. */
  readonly leaks: readonly Leak[];
}

/** What a soak has seen and done. */
export interface Soaked {
  readonly rows: readonly Row[];
  readonly disturbances: readonly { readonly atMs: number; readonly what: string }[];
  readonly servers: readonly string[];
  readonly operations: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
}

const NAMESPACE = "soak";
const ROWS = 360;
const SHORTEST_MS = 100;
const LONGEST_MS = 5_000;
/** Between two disturbances at least; three rows in a long run. */
const CALM_MS = 5_000;
/**
 * From the end of the disturbances to the last answer. The longest operation is a write that is
 * tried five times against a gateway that does not answer.
 */
const RECOVERY_MS = 40_000;
const postgresClient = { application_name: "soak", connectionTimeoutMillis: 5_000, query_timeout: 5_000 };
const probeModule = new URL("../traffic/probe.js", import.meta.url).href;
const postgresSettings = {
  shared_buffers: "32MB",
  checkpoint_timeout: "1min",
  min_wal_size: "32MB",
  max_wal_size: "64MB",
  autovacuum_naptime: "5s",
};

interface Hooks {
  readonly onProgress: (elapsedMs: number, operations: number) => void;
  readonly interrupted: AbortSignal;
}

/** The rows are written as they come: they outlive a kill of the run. */
export async function soak(asked: SoakAsked, { onProgress, interrupted }: Hooks): Promise<Soaked> {
  const lastsMs = asked.minutes * 60_000;
  const everyMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, lastsMs / ROWS));
  await using closers = new Closers();
  const { environment, servers, filled } = await startSoak(asked, closers, everyMs);
  const { workers, gateway, fleet } = environment;
  const pids = { gateway: gateway.pid, ...Object.fromEntries(fleet.nodes.map(({ name, pid }) => [name, pid])), ...workers.pids };
  writeLine(asked, { kind: "head", asked, servers, pids, node: process.version, startedAt: new Date().toISOString() });
  // No disturbance ends the gateway: if it ends by itself, the soak fails with its last words.
  const gatewayEnded = gateway.ended();
  await Promise.race([workers.said("ready"), gatewayEnded]);
  await Promise.race([fill(filled, interrupted), gatewayEnded]);
  const sampler = new Sampler(environment, everyMs);
  const startedAt = performance.now();
  const elapsedMs = (): number => performance.now() - startedAt;
  const rows: Row[] = [];
  const disturbances: { atMs: number; what: string }[] = [];
  const failed = new AbortController();
  const takeRows = async (): Promise<void> => {
    // On a busy machine the same number of rows takes longer.
    const noMore = AbortSignal.any([interrupted, failed.signal]);
    for (let row = 1; row <= Math.ceil(lastsMs / everyMs) && !noMore.aborted; row++) {
      await waited(Math.max(0, row * everyMs - elapsedMs()), noMore);
      if (failed.signal.aborted) return;
      rows.push({ atMs: elapsedMs(), values: await sampler.take() });
      writeLine(asked, { kind: "row", ...rows.at(-1) });
      onProgress(elapsedMs(), sampler.total);
    }
  };
  const onDisturbance = (what: string): void => {
    disturbances.push({ atMs: elapsedMs(), what });
    writeLine(asked, { kind: "disturbance", ...disturbances.at(-1) });
  };
  const { isRecovered } = await run<SoakEnvironment>({
    start: async () => environment,
    inject: (_, { over }) => disturb(environment, { everyMs: Math.max(CALM_MS, everyMs * 3), onDisturbance }, over),
    traffic: () => Promise.race([takeRows(), gatewayEnded]),
    recoveryMs: RECOVERY_MS,
    interrupted,
  }).catch((error: unknown) => {
    failed.abort(); // Otherwise the rows would go on, and keep the process alive, until the time is over.
    throw error;
  });
  if (!isRecovered && !interrupted.aborted) throw new Error(`not every client ended its last operation within ${RECOVERY_MS} ms`);
  const { operations, failures } = sampler;
  return { rows, disturbances, servers, operations, failures };
}

/** To the file that --json names; the first line makes it anew. */
export function writeLine({ json }: SoakAsked, line: Readonly<Record<string, unknown>>): void {
  if (json !== undefined) (line.kind === "head" ? writeFileSync : appendFileSync)(json, `${JSON.stringify(line)}\n`);
}

interface Started {
  readonly environment: SoakEnvironment;
  readonly servers: readonly string[];
  readonly filled: Filled;
}

async function startSoak({ clients, seed, perSecond, leaks }: SoakAsked, closers: Closers, reportEveryMs: number): Promise<Started> {
  const fleet = closers.use(await RedisFleet.start({ nodes: 5, appendfsync: "always", clock: "real" }));
  const postgres = closers.use(await PostgresServer.start({ durable: true, settings: postgresSettings }));
  const database = await postgres.createDatabase();
  const env = {
    DATABASE_URL: database.url,
    PALISADE_REDIS_URLS: fleet.urls.join(","),
    PALISADE_NAMESPACE: NAMESPACE,
    PALISADE_VERIFY: "closed",
    PALISADE_HISTORY: "on",
    SOAK_READING_EVERY_MS: String(reportEveryMs),
  };
  const gatewaySelf: SoakEnvironment["gatewaySelf"] = { self: undefined, at: 0 };
  const onMessage = (message: unknown): void => {
    Object.assign(gatewaySelf, { self: message as SelfReading, at: performance.now() });
  };
  const gateway = closers.use(new Gateway("the gateway", env, { module: probeModule, onMessage }));
  await gateway.start();
  const { url: gatewayUrl, proxy: gatewayLink } = await gateway.link();
  await gateway.ready();
  const filled = { redisUrls: fleet.urls, gatewayUrl, namespace: NAMESPACE };
  const names = Array.from({ length: clients }, (_, index) => ({ name: `client ${index + 1}`, client: index + 1 }));
  const places = names.map(({ name, client }) => {
    const leaking = client === 1 ? leaks : [];
    const orders = {
      traffic: "load" as const,
      ...filled,
      name,
      seed,
      client,
      perSecond: perSecond / clients,
      leaks: leaking,
      reportEveryMs,
    };
    return { name, orders: () => orders };
  });
  const workers = closers.use(new Workers(places));
  const ask = (statement: string): Promise<Record<string, unknown>> =>
    withClient(database.url, async (client) => (await client.query(statement)).rows[0] ?? {}, postgresClient);
  const environment = { fleet, gateway, gatewayLink, gatewaySelf, workers, ask };
  return { environment, servers: [fleet.description, postgres.description], filled };
}

/** Counts the rounds through the list. */
type Inject = (environment: SoakEnvironment, round: number) => Promise<unknown>;

const TERMINATE =
  "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name <> 'soak'";

/**
 * What happens to every system in production now and then, one at a time, in turn. Leaks hide in
 * the error paths; no promise is judged here. The last node is never restarted, to show a long
 * life; the last client is never stopped.
 */
const ordinary: readonly (readonly [string, Inject])[] = [
  ["node restarted", ({ fleet }, round) => nodeOf(fleet, round % (fleet.nodes.length - 1)).restart()],
  ["gateway's connections to Postgres ended", ({ ask }) => ask(TERMINATE)],
  [
    "node slow",
    async ({ fleet }, round) => {
      await nodeOf(fleet, round).slow(40);
      await sleep(2_000);
      await nodeOf(fleet, round).heal();
    },
  ],
  ["connections to the gateway cut", async ({ gatewayLink }) => gatewayLink.cut()],
  ["connections to a node cut", async ({ fleet }, round) => nodeOf(fleet, round).cut()],
  [
    "client stopped",
    async ({ workers: { all } }, round) => {
      const client = all[round % (all.length - 1)];
      client?.stop();
      await sleep(1_200);
      client?.continue();
    },
  ],
  [
    "node unreachable",
    async ({ fleet }, round) => {
      await nodeOf(fleet, round).partition();
      await sleep(1_500);
      await nodeOf(fleet, round).heal();
    },
  ],
  ["all connections to all nodes cut", async ({ fleet }) => fleet.nodes.map((node) => node.cut())],
];

interface Disturbing {
  readonly everyMs: number;
  readonly onDisturbance: (what: string) => void;
}

/** Until the signal comes; resolves when everything is undone. */
async function disturb(environment: SoakEnvironment, { everyMs, onDisturbance }: Disturbing, over: AbortSignal): Promise<void> {
  for (let turn = 0; await waited(everyMs, over); turn++) {
    const [what, inject] = ordinary[turn % ordinary.length] as (typeof ordinary)[number];
    onDisturbance(what);
    await inject(environment, Math.floor(turn / ordinary.length));
  }
}

function nodeOf({ nodes }: RedisFleet, index: number): RedisFleet["nodes"][number] {
  return nodes[index % nodes.length] as RedisFleet["nodes"][number];
}

// `npm run soak`: half an hour of everything, and whether anything grows that should not. Clients work for long while
// ordinary disturbances come in turn and rows of values are taken. Retentions and intervals are shortened, so that half
// an hour shows the level at which things stay. Exit code 1 if a curve is not flat (with --leak: if none of client 1's
// stands out), 2 if the arguments make no sense, 130 if the run was interrupted.
import { appendFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Closers, PostgresServer, RedisFleet, withClient } from "@palisade/testkit";
import { findAll, isBad, type Row, standsOut } from "./checkers/curves.js";
import { fileOf, minutesOf, numberFor, oneOf, progressLines, runCommand, seedOf, textOf, whole } from "./command.js";
import { waited } from "./history.js";
import { type Soaked, soakReport, titleOf } from "./report.js";
import { run } from "./runs/run.js";
import { Workers } from "./runs/workers.js";
import { Gateway } from "./servers/gateway.js";
import { Sampler, type SoakEnvironment } from "./servers/sampler.js";
import { type Filled, fill } from "./traffic/load.js";
import { type Leak, leaks } from "./traffic/messages.js";
import type { SelfReading } from "./traffic/probe.js";

const usage = `npm run soak -- [options]
  --minutes M   how long (30)
  --rate R      operations per second of all clients together, as far as they can (100)
  --clients N   client processes (4)
  --seed S      what to draw the operations from (from the clock)
  --json FILE   one JSON object per line: what was asked, rows of values as they come, verdicts
  --leak KINDS  the control: client 1 leaks some of ${leaks.join(",")}, and must be found`;

interface SoakAsked {
  readonly minutes: number;
  readonly perSecond: number;
  readonly seed: string;
  readonly clients: number;
  /** Of client 1, in the control. */
  readonly leaks: readonly Leak[];
  /** Where each line goes as it comes. */
  readonly json: string | undefined;
}

async function perform(asked: SoakAsked): Promise<number> {
  const interrupted = interruption();
  console.log(`seed ${asked.seed}, ${asked.minutes} min at ${asked.perSecond} operations per second`);
  const show = progressLines(60_000);
  try {
    const soaked = await soak(asked, interrupted, (elapsedMs, operations) =>
      show(`${(elapsedMs / 60_000).toFixed(1)} of ${asked.minutes} min, ${whole(operations)} operations`),
    );
    show("");
    const code = conclude(asked, soaked);
    return interrupted.aborted ? 130 : code;
  } catch (error) {
    // Not a verdict: the soak itself failed, and has ended every process that it had started.
    show("");
    console.error(`the soak broke off: ${(error as Error).stack ?? error}`);
    return 1;
  }
}

function conclude(asked: SoakAsked, soaked: Soaked): number {
  const findings = findAll(soaked.rows);
  const { operations, failures } = soaked;
  const verdicts = findings.flatMap(({ panel, curves }) =>
    curves.map(({ name, verdict }) => ({ curve: `${panel.id}/${name}`, ...verdict })),
  );
  writeLine(asked, { kind: "end", ...{ operations, failures, verdicts } });
  console.log(soakReport(soaked, findings));
  const bad = findings.filter(({ curves }) => curves.some(isBad));
  if (asked.leaks.length === 0) return bad.length === 0 && findings.length > 0 ? 0 : 1;
  const found = bad.filter(standsOut).map(titleOf);
  console.log(
    found.length > 0
      ? `client 1 was found by: ${found.join("; ")}. So it should be: this is the control`
      : "client 1 leaks, and was not found: this is the control",
  );
  return found.length > 0 ? 0 : 1;
}

/** The first signal ends the run in order, with what was seen so far; the second at once. */
function interruption(): AbortSignal {
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (interrupted.signal.aborted) process.exit(130);
      interrupted.abort();
    });
  }
  return interrupted.signal;
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
const probeModule = new URL("./traffic/probe.js", import.meta.url).href;
const postgresSettings = {
  shared_buffers: "32MB",
  checkpoint_timeout: "1min",
  min_wal_size: "32MB",
  max_wal_size: "64MB",
  autovacuum_naptime: "5s",
};

/** The rows are written as they come: they outlive a kill of the run. */
async function soak(
  asked: SoakAsked,
  interrupted: AbortSignal,
  onProgress: (elapsedMs: number, operations: number) => void,
): Promise<Soaked> {
  const lastsMs = asked.minutes * 60_000;
  const everyMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, lastsMs / ROWS));
  await using closers = new Closers();
  const { environment, servers, filled } = await startSoak(asked, closers, everyMs);
  const { workers, gateway, fleet } = environment;
  const pids = { gateway: gateway.pid, ...Object.fromEntries(fleet.nodes.map(({ name, pid }) => [name, pid])), ...workers.pids };
  writeLine(asked, { kind: "head", asked, servers, pids, node: process.version, startedAt: new Date().toISOString() });
  // No disturbance ends the gateway: if it ends by itself, the soak fails with its last words.
  const gatewayEnded = gateway.ended();
  await Promise.race([workers.ready(), gatewayEnded]);
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
  const { isRecovered } = await run(workers, {
    inject: async ({ over }) => {
      for (let turn = 0; await waited(Math.max(CALM_MS, everyMs * 3), over); turn++) {
        const [what, disturb] = ordinary[turn % ordinary.length] as (typeof ordinary)[number];
        disturbances.push({ atMs: elapsedMs(), what });
        writeLine(asked, { kind: "disturbance", ...disturbances.at(-1) });
        await disturb(environment, Math.floor(turn / ordinary.length));
      }
    },
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
function writeLine({ json }: SoakAsked, line: Readonly<Record<string, unknown>>): void {
  if (json !== undefined) (line.kind === "head" ? writeFileSync : appendFileSync)(json, `${JSON.stringify(line)}\n`);
}

async function startSoak(
  { clients, seed, perSecond, leaks }: SoakAsked,
  closers: Closers,
  reportEveryMs: number,
): Promise<{ readonly environment: SoakEnvironment; readonly servers: readonly string[]; readonly filled: Filled }> {
  const fleet = closers.use(await RedisFleet.start({ nodes: 5, provider: "local", appendfsync: "always", clock: "real" }));
  const postgres = closers.use(await PostgresServer.start({ provider: "local", durable: true, settings: postgresSettings }));
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
  const places = Array.from({ length: clients }, (_, index) => {
    const [name, client] = [`client ${index + 1}`, index + 1];
    const common = { traffic: "load" as const, ...filled, name, seed, client, perSecond: perSecond / clients, reportEveryMs };
    return { name, orders: () => ({ ...common, leaks: client === 1 ? leaks : [] }) };
  });
  const workers = closers.use(new Workers(places));
  const ask = (statement: string): Promise<Record<string, unknown>> =>
    withClient(database.url, async (client) => (await client.query(statement)).rows[0] ?? {}, postgresClient);
  const environment = { fleet, gateway, gatewayLink, gatewaySelf, workers, ask };
  return { environment, servers: [fleet.description, postgres.description], filled };
}

function nodeOf({ nodes }: RedisFleet, index: number): RedisFleet["nodes"][number] {
  return nodes[index % nodes.length] as RedisFleet["nodes"][number];
}

/** Its number is that of the round through the list. */
type Disturb = (environment: SoakEnvironment, round: number) => Promise<unknown>;

const TERMINATE =
  "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name <> 'soak'";

/**
 * What happens to every system in production now and then, one at a time, in turn. Leaks hide in
 * the error paths; no promise is judged here. The last node is never restarted, to show a long
 * life; the last client is never stopped.
 */
const ordinary: readonly (readonly [string, Disturb])[] = [
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

process.exitCode = await runCommand(usage, process.argv.slice(2), (values) => {
  const asked: SoakAsked = {
    minutes: minutesOf(values, 30),
    perSecond: numberFor(values, "rate", { fallback: 100, least: 1, most: 100_000, isWhole: false }),
    // One is stopped now and then, and one never.
    clients: numberFor(values, "clients", { fallback: 4, least: 2, most: 64 }),
    seed: seedOf(values),
    leaks: (textOf(values, "leak")?.split(",") ?? []).map((name) => oneOf("leak", name, leaks)),
    json: fileOf(values, "json"),
  };
  return () => perform(asked);
});

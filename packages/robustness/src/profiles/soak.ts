// The soak's servers, clients and course: clients work for long while ordinary disturbances come in
// turn and rows of values are taken. Retentions and intervals are shortened, so that half an hour
// shows the level at which things stay.
import { PostgresServer, RedisFleet, withClient } from "@palisade/testkit";
import { disturb } from "../faults/disturbances.js";
import { oneOf, positive, type ReportFiles, reportFiles, seedOf, type Values, wholeNumber } from "../harness/command.js";
import { Closers, run } from "../harness/run.js";
import { type Place, Workers } from "../harness/workers.js";
import { waited } from "../history/records.js";
import { Samples, type Soaked } from "../history/samples.js";
import type { SoakEnvironment } from "../servers/environment.js";
import { Gateway } from "../servers/gateway.js";
import { Sampler } from "../servers/sampler.js";
import { fill } from "../traffic/fill.js";
import { type Leak, leaks } from "../traffic/messages.js";
import type { SelfReading } from "../traffic/probe.js";

export interface SoakAsked extends ReportFiles {
  readonly minutes: number;
  readonly perSecond: number;
  readonly seed: string;
  readonly clients: number;
  readonly leaks: readonly Leak[];
  readonly from: string | undefined;
}

export function readSoakArguments(values: Values): SoakAsked {
  return {
    minutes: positive(values, "minutes", 30),
    perSecond: positive(values, "rate", 100),
    // One is stopped now and then, and one never.
    clients: wholeNumber(values, "clients", { fallback: 4, least: 2, most: 64 }),
    seed: seedOf(values),
    leaks: (values.text.leak?.split(",") ?? []).map((name) => oneOf("leak", name, leaks)),
    from: values.text.from,
    ...reportFiles(values),
  };
}

interface Hooks {
  /** Before the first operation: the gateway's memory of resources is filled. */
  readonly onFilled: (share: number) => void;
  readonly onProgress: (elapsedMs: number, samples: Samples, operations: number) => void;
  readonly interrupted: AbortSignal;
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
const probeModule = new URL("../traffic/gateway-probe.js", import.meta.url).href;
const postgresSettings = {
  shared_buffers: "32MB",
  checkpoint_timeout: "1min",
  min_wal_size: "32MB",
  max_wal_size: "64MB",
  autovacuum_naptime: "5s",
};

export async function soak(asked: SoakAsked, { onFilled, onProgress, interrupted }: Hooks): Promise<Soaked> {
  const lastsMs = asked.minutes * 60_000;
  const everyMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, lastsMs / ROWS));
  await using closers = new Closers();
  const { environment, servers, urls } = await startSoak(asked, closers, everyMs);
  const pids = pidsOf(environment);
  const samples = new Samples(asked.json, { asked, servers, pids, node: process.version, startedAt: new Date().toISOString() });
  const { workers, gateway } = environment;
  // No disturbance ends the gateway: if it ends by itself, the soak fails with its last words.
  const gatewayEnded = gateway.ended();
  await Promise.race([workers.said("ready"), gatewayEnded]);
  await Promise.race([fill({ ...urls, namespace: NAMESPACE }, { onFilled, interrupted }), gatewayEnded]);
  const sampler = new Sampler(environment, everyMs);
  const startedAt = performance.now();
  const elapsedMs = (): number => performance.now() - startedAt;
  const onDisturbance = (what: string): void => samples.addDisturbance({ atMs: elapsedMs(), what });
  const failed = new AbortController();
  const takeRows = async (): Promise<void> => {
    // On a busy machine the same number of rows takes longer.
    const noMore = AbortSignal.any([interrupted, failed.signal]);
    for (let row = 1; row <= Math.ceil(lastsMs / everyMs) && !noMore.aborted; row++) {
      await waited(Math.max(0, row * everyMs - elapsedMs()), noMore);
      if (failed.signal.aborted) return;
      samples.addRow({ atMs: elapsedMs(), values: await sampler.take() });
      onProgress(elapsedMs(), samples, sampler.total);
    }
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
  return { samples, servers, operations, failures, ending: interrupted.aborted ? "interrupted" : "time is over" };
}

interface Started {
  readonly environment: SoakEnvironment;
  readonly servers: readonly string[];
  readonly urls: { readonly redisUrls: readonly string[]; readonly gatewayUrl: string };
}

async function startSoak(asked: SoakAsked, closers: Closers, reportEveryMs: number): Promise<Started> {
  const fleet = closers.use(await RedisFleet.start({ nodes: 5, appendfsync: "always", clock: "real" }));
  const postgres = closers.use(await PostgresServer.start({ durable: true, settings: postgresSettings }));
  const database = await postgres.createDatabase();
  const gatewaySelf: SoakEnvironment["gatewaySelf"] = { self: undefined, at: 0 };
  const onMessage = (message: unknown): void => {
    gatewaySelf.self = (message as { readonly self: SelfReading }).self;
    gatewaySelf.at = performance.now();
  };
  const env = gatewayEnv(database.url, fleet.urls, reportEveryMs);
  const gateway = closers.use(new Gateway({ name: "the gateway", env, logLevel: "error", probe: { module: probeModule, onMessage } }));
  await gateway.start();
  const { url: gatewayUrl, proxy: gatewayLink } = await gateway.link();
  await gateway.ready();
  const urls = { redisUrls: fleet.urls, gatewayUrl };
  const workers = closers.use(
    new Workers(Array.from({ length: asked.clients }, (_, index) => place(asked, index + 1, { ...urls, reportEveryMs }))),
  );
  const ask = (statement: string): Promise<Record<string, unknown>> =>
    withClient(database.url, async (client) => (await client.query(statement)).rows[0] ?? {}, postgresClient);
  return {
    environment: { fleet, gateway, gatewayLink, gatewaySelf, workers, ask },
    servers: [fleet.description, postgres.description],
    urls,
  };
}

function gatewayEnv(databaseUrl: string, redisUrls: readonly string[], readingEveryMs: number): Readonly<Record<string, string>> {
  return {
    DATABASE_URL: databaseUrl,
    PALISADE_REDIS_URLS: redisUrls.join(","),
    PALISADE_NAMESPACE: NAMESPACE,
    PALISADE_VERIFY: "closed",
    PALISADE_HISTORY: "on",
    PALISADE_IDEMPOTENCY_RETENTION_MS: "60000",
    SOAK_READING_EVERY_MS: String(readingEveryMs),
  };
}

type PlaceUrls = Started["urls"] & { readonly reportEveryMs: number };

function place({ clients, seed, perSecond, leaks: all }: SoakAsked, client: number, urls: PlaceUrls): Place {
  const name = `client ${client}`;
  const leaking = client === 1 ? all : [];
  const each = { traffic: "load" as const, namespace: NAMESPACE, perSecond: perSecond / clients, leaks: leaking };
  return { name, orders: () => ({ ...each, ...urls, name, seed, client }) };
}

function pidsOf({ gateway, fleet, workers }: SoakEnvironment): Readonly<Record<string, number | undefined>> {
  return { gateway: gateway.pid, ...Object.fromEntries(fleet.nodes.map(({ name, pid }) => [name, pid])), ...workers.pids };
}

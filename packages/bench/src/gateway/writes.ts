// PUTs, GETs and refusals: the gateway, which compares a token and answers with a revision, beside
// hand-written servers on the same Postgres.
import type { Contestant, Effort } from "../measure/comparison.js";
import type { Context, Scope } from "../measure/part.js";
import { type Bench, type HttpLoad, httpContestant, prepare, walColumn } from "./http-contestant.js";
import type { Requests } from "./load-client.js";
import type { StyleKey } from "./servers.js";

const EFFORT: Effort = { rounds: 5, seconds: 0.8 };
const TOKEN = "7";
const headers = { "content-type": "application/json", "fencing-token": TOKEN };

const order = {
  status: "paid",
  total: 4_200,
  currency: "EUR",
  lines: Array.from({ length: 5 }, (_, i) => ({ sku: `A-${i}`, count: i })),
};
const document = JSON.stringify(order);

/** Some members of different types, about as long as asked for. */
function documentOf(bytes: number): string {
  const item = (i: number): object => ({ name: `item ${i}`, count: i, on: true });
  return JSON.stringify({ n: 1, items: Array.from({ length: Math.max(1, Math.round(bytes / 40)) }, (_, i) => item(i)) });
}

const put = (body: string, each = 50): Requests => ({
  method: "PUT",
  path: "/v1/resources/orders/{c}-{i}",
  headers,
  body,
  each,
  expect: [200, 201],
});
const get: Requests = { method: "GET", path: "/v1/resources/orders/{c}-{i}", each: 50, expect: [200] };
const hot: Requests = { method: "PUT", path: "/v1/resources/orders/hot", headers, body: document, expect: [200, 201] };

interface Row {
  readonly id: string;
  readonly title: string;
  readonly remark: string;
  readonly load: HttpLoad;
  readonly keys: readonly StyleKey[];
  readonly effort?: Effort;
  readonly isRead?: true;
}

const bytes = Buffer.byteLength(document);
const sizes = { "0.1-kB": 100, "1-kB": 1_000, "10-kB": 10_000, "100-kB": 100_000 } as const;
const MOST_SIZED = 16;

export const httpRows = {
  puts: [64, 1].map(
    (connections): Row => ({
      id: `puts/${connections}`,
      title: `PUT over ${connections === 1 ? "one connection" : `${connections} connections`}`,
      remark: `${bytes} bytes each, ${connections * 50} resources, commits on disk`,
      load: { connections, requests: put(document) },
      keys: ["express", "fastify", "http", "batched", "expressFenced", "palisade"],
    }),
  ),
  gets: [64, 1].map(
    (connections): Row => ({
      id: `gets/${connections}`,
      title: `GET over ${connections === 1 ? "one connection" : `${connections} connections`}`,
      remark: `${bytes} bytes each`,
      load: { connections, requests: get },
      keys: ["express", "fastify", "http", "palisade"],
      isRead: true,
    }),
  ),
  "hot-key": [
    {
      id: "hot-key",
      title: "PUT of one resource over 64 connections",
      remark: `${bytes} bytes each, commits on disk`,
      load: { connections: 64, requests: hot },
      keys: ["express", "fastify", "batched", "palisade"],
    },
  ],
  sizes: Object.entries(sizes).map(([name, size]): Row => {
    const connections = size > 10_000 ? MOST_SIZED / 2 : MOST_SIZED;
    const body = documentOf(size);
    return {
      id: `sizes/${name}`,
      title: `PUT of ${name.replace("-", " ")}`,
      remark: `${Buffer.byteLength(body)} bytes each, ${connections} connections, commits on disk`,
      load: { connections, requests: put(body, 4) },
      keys: ["express", "fastify", "http", "palisade"],
      effort: { rounds: 5, seconds: 0.6 },
    };
  }),
} as const satisfies Readonly<Record<string, readonly Row[]>>;

const headlineKeys: ReadonlySet<StyleKey> = new Set(["express", "fastify", "batched", "palisade"]);

export async function measureHttp(bench: Bench, context: Context, rows: readonly Row[]): Promise<void> {
  for (const row of rows) {
    const { title, id, remark, load, keys, effort = EFFORT, isRead = false } = row;
    context.progress.begin(title);
    const contestants = [];
    for (const key of bench.servers.keys(fit(keys, context.scope, isRead))) {
      const group = await bench.servers.group(key);
      // What is read must be there.
      if (isRead) await prepare(bench, group, { ...load, requests: put(document) });
      contestants.push(httpContestant(bench, group, load));
    }
    const compared = load.connections === 1 ? "p50Us" : "perSecond";
    const columns = isRead ? [] : [walColumn];
    await context.compare({ id, title, remark, effort: context.effort(effort), contestants, compared, columns });
  }
}

function fit(keys: readonly StyleKey[], scope: Scope, isRead: boolean): readonly StyleKey[] {
  if (scope !== "quick") return keys;
  return keys.filter((key) => headlineKeys.has(key) && !(isRead && key === "batched"));
}

interface RateRow {
  readonly id: string;
  readonly title: string;
  readonly remark: string;
  contestants(bench: Bench, context: Context): Promise<readonly Contestant[]>;
}

function rateOf(row: RateRow): (bench: Bench, context: Context) => Promise<void> {
  return async (bench, context) => {
    context.progress.begin(row.title);
    const contestants = await row.contestants(bench, context);
    await context.compare({ ...row, contestants, effort: context.effort(EFFORT), compared: "perSecond", columns: [walColumn] });
  };
}

/** A write whose token is too low, beside one that is accepted. */
export const measureRefusals = rateOf({
  id: "refusals",
  title: "Stale writes refused, over 64 connections",
  remark: "token 6 where 7 is stored; the log is that of the whole server",
  async contestants(bench, { scope }) {
    const accepted: Requests = { ...put('{"late":true}', 1), path: "/v1/resources/accepted/{c}" };
    const stored: Requests = { ...accepted, path: "/v1/resources/refused/{c}" };
    const refused: Requests = { ...stored, headers: { ...headers, "fencing-token": "6" }, expect: [412] };
    const contestants: Contestant[] = [];
    const keys: readonly StyleKey[] = scope === "quick" ? ["palisade"] : ["palisade", "expressFenced", "batchedFenced"];
    for (const key of bench.servers.keys(keys)) {
      const group = await bench.servers.group(key);
      await prepare(bench, group, { connections: 64, requests: stored });
      if (key === "palisade" || key === "before")
        contestants.push(httpContestant(bench, group, { connections: 64, requests: accepted, suffix: ", accepted" }));
      contestants.push(httpContestant(bench, group, { connections: 64, requests: refused, suffix: ", refused" }));
    }
    await bench.log.checkpoint();
    return contestants;
  },
});

/** Several processes in front of one database. */
export const measureGateways = rateOf({
  id: "gateways",
  title: "PUT over 64 connections to 1, 2 and 4 processes",
  remark: `${bytes} bytes each, commits on disk, one database`,
  async contestants(bench) {
    const contestants: Contestant[] = [];
    for (const key of bench.servers.keys(["express", "palisade"]))
      for (const processes of [1, 2, 4]) {
        const group = await bench.servers.group(key, processes);
        contestants.push(httpContestant(bench, group, { connections: 64, requests: put(document) }));
      }
    return contestants;
  },
});

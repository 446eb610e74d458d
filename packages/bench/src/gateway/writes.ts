// PUTs, GETs and refusals: the gateway, which compares a token and answers with a revision, beside
// hand-written servers on the same Postgres.
import { compare, type Effort, type Plan } from "../measure/comparison.js";
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
  ...{ method: "PUT", path: "/v1/resources/orders/{c}-{i}", headers, body, each },
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
    const compared = load.connections === 1 ? ("p50Us" as const) : ("perSecond" as const);
    const columns = isRead ? [] : [walColumn];
    const plan: Plan = { id, title, remark, effort: context.effort(effort), contestants, compared, columns };
    context.publish(await compare(plan, context.progress));
  }
}

function fit(keys: readonly StyleKey[], scope: Scope, isRead: boolean): readonly StyleKey[] {
  if (scope !== "quick") return keys;
  return keys.filter((key) => headlineKeys.has(key) && !(isRead && key === "batched"));
}

/** A write whose token is too low, beside one that is accepted. */
export async function measureRefusals(bench: Bench, context: Context): Promise<void> {
  const title = "Stale writes refused, over 64 connections";
  context.progress.begin(title);
  const accepted: Requests = { ...put('{"late":true}', 1), path: "/v1/resources/accepted/{c}" };
  const stored: Requests = { ...put('{"late":true}', 1), path: "/v1/resources/refused/{c}" };
  const refused: Requests = { ...stored, headers: { ...headers, "fencing-token": "6" }, expect: [412] };
  const contestants = [];
  const keys: readonly StyleKey[] = context.scope === "quick" ? ["palisade"] : ["palisade", "expressFenced", "batchedFenced"];
  for (const key of bench.servers.keys(keys)) {
    const group = await bench.servers.group(key);
    await prepare(bench, group, { connections: 64, requests: stored });
    if (key === "palisade" || key === "before")
      contestants.push(httpContestant(bench, group, { connections: 64, requests: accepted, suffix: ", accepted" }));
    contestants.push(httpContestant(bench, group, { connections: 64, requests: refused, suffix: ", refused" }));
  }
  await bench.log.checkpoint();
  const remark = "token 6 where 7 is stored; the log is that of the whole server";
  const plan: Plan = {
    id: "refusals",
    title,
    remark,
    effort: context.effort(EFFORT),
    contestants,
    compared: "perSecond",
    columns: [walColumn],
  };
  context.publish(await compare(plan, context.progress));
}

/** Several processes in front of one database. */
export async function measureGateways(bench: Bench, context: Context): Promise<void> {
  const title = "PUT over 64 connections to 1, 2 and 4 processes";
  context.progress.begin(title);
  const contestants = [];
  for (const key of bench.servers.keys(["express", "palisade"]))
    for (const processes of [1, 2, 4]) {
      const group = await bench.servers.group(key, processes);
      contestants.push(httpContestant(bench, group, { connections: 64, requests: put(document) }));
    }
  const remark = `${bytes} bytes each, commits on disk, one database`;
  const plan: Plan = {
    id: "gateways",
    title,
    remark,
    effort: context.effort(EFFORT),
    contestants,
    compared: "perSecond",
    columns: [walColumn],
  };
  context.publish(await compare(plan, context.progress));
}

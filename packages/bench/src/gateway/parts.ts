// The parts of the gateway, all on one Postgres: PUTs, GETs, refusals, transactions and growing tables. The
// gateway compares a token and answers with a revision; beside it hand-written servers on the same Postgres.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { CitusCluster, connectTo, gatewayProgram } from "@palisade/testkit";
import type { Names } from "../lock/client.js";
import { LockBench } from "../lock/lock-bench.js";
import type { Contestant, Effort, Plan, Round } from "../measure/comparison.js";
import type { Context, Part, Scope } from "../measure/part.js";
import { shown } from "../measure/results.js";
import { type ComparedServer, GatewayBench, type HttpLoad, pidsOf, type StyleKey, startServer, walColumn } from "./gateway-bench.js";
import type { Requests } from "./load-client.js";

const EFFORT: Effort = { rounds: 5, seconds: 0.8 };
const headers = { "content-type": "application/json", "fencing-token": "7" };

const order = {
  status: "paid",
  total: 4_200,
  currency: "EUR",
  lines: Array.from({ length: 5 }, (_, i) => ({ sku: `A-${i}`, count: i })),
};
const document = JSON.stringify(order);
const bytes = Buffer.byteLength(document);

/** Some members of different types, about as long as asked for. */
function documentOf(size: number): string {
  const item = (i: number): object => ({ name: `item ${i}`, count: i, on: true });
  return JSON.stringify({ n: 1, items: Array.from({ length: Math.max(1, Math.round(size / 40)) }, (_, i) => item(i)) });
}

const path = "/v1/resources/orders/{c}-{i}";
const put = (body: string, each = 50): Requests => ({ method: "PUT", path, headers, body, each, expect: [200, 201] });
const get: Requests = { method: "GET", path, each: 50, expect: [200] };

interface Row extends Pick<Plan, "id" | "title" | "remark" | "columns"> {
  readonly effort?: Effort;
  /** By rates unless it is said. */
  readonly compared?: Plan["compared"];
  contestants(bench: GatewayBench, context: Context): Promise<readonly Contestant[]>;
}

type Measure = (bench: GatewayBench, context: Context) => Promise<void>;

const measured =
  (rows: readonly Row[]): Measure =>
  async (bench, context) => {
    for (const { contestants, effort = EFFORT, compared = "perSecond", columns = [walColumn], ...row } of rows) {
      context.progress.begin(row.title);
      const all = await contestants(bench, context);
      await context.compare({ ...row, contestants: all, effort: context.effort(effort), compared, columns });
    }
  };

const headlineKeys: ReadonlySet<StyleKey> = new Set(["express", "fastify", "batched", "palisade"]);

function fit(keys: readonly StyleKey[], scope: Scope): readonly StyleKey[] {
  return scope === "quick" ? keys.filter((key) => headlineKeys.has(key)) : keys;
}

/** The same load on each of them. What `first` asks for is there before anything is measured. */
const underLoad =
  (keys: readonly StyleKey[], load: HttpLoad, first?: Requests): Row["contestants"] =>
  async (bench, { scope }) => {
    const contestants: Contestant[] = [];
    for (const key of bench.keys(fit(keys, scope))) {
      const server = await bench.server(key);
      if (first !== undefined) await bench.prepare(server, { ...load, requests: first });
      contestants.push(bench.contestant(server, load));
    }
    return contestants;
  };

const over = (connections: number) => (connections === 1 ? "one connection" : `${connections} connections`);

const puts = [64, 1].map(
  (connections): Row => ({
    id: `puts/${connections}`,
    title: `PUT over ${over(connections)}`,
    remark: `${bytes} bytes each, ${connections * 50} resources, commits on disk`,
    compared: connections === 1 ? "p50Us" : "perSecond",
    contestants: underLoad(["express", "fastify", "http", "batched", "expressFenced", "palisade"], {
      connections,
      requests: put(document),
    }),
  }),
);

const gets = [64, 1].map(
  (connections): Row => ({
    id: `gets/${connections}`,
    title: `GET over ${over(connections)}`,
    remark: `${bytes} bytes each`,
    compared: connections === 1 ? "p50Us" : "perSecond",
    columns: [],
    contestants: underLoad(["express", "fastify", "http", "palisade"], { connections, requests: get }, put(document)),
  }),
);

const hotKey: Row = {
  id: "hot-key",
  title: "PUT of one resource over 64 connections",
  remark: `${bytes} bytes each, commits on disk`,
  contestants: underLoad(["express", "fastify", "batched", "palisade"], {
    connections: 64,
    requests: { ...put(document, 1), path: "/v1/resources/orders/hot" },
  }),
};

const sizes = Object.entries({ "0.1-kB": 100, "1-kB": 1_000, "10-kB": 10_000, "100-kB": 100_000 }).flatMap(([name, size]): Row[] => {
  const connections = size > 10_000 ? 8 : 16;
  const requests = put(documentOf(size), 4);
  const remark = `${Buffer.byteLength(documentOf(size))} bytes each, ${connections} connections`;
  const keys = ["express", "fastify", "http", "palisade"] as const;
  const effort: Effort = { rounds: 5, seconds: 0.6 };
  return [
    {
      id: `sizes/${name}`,
      title: `PUT of ${name.replace("-", " ")}`,
      remark: `${remark}, commits on disk`,
      effort,
      contestants: underLoad(keys, { connections, requests }),
    },
    {
      id: `sizes/get-${name}`,
      title: `GET of ${name.replace("-", " ")}`,
      remark,
      effort,
      columns: [],
      contestants: underLoad(keys, { connections, requests: { ...get, each: 4 } }, requests),
    },
  ];
});

/** A write whose token is too low, beside one that is accepted. */
const refusals: Row = {
  id: "refusals",
  title: "Stale writes refused, over 64 connections",
  remark: "token 6 where 7 is stored; the log is that of the whole server",
  async contestants(bench, { scope }) {
    const accepted: Requests = { ...put('{"late":true}', 1), path: "/v1/resources/accepted/{c}" };
    const stored: Requests = { ...accepted, path: "/v1/resources/refused/{c}" };
    const refused: Requests = { ...stored, headers: { ...headers, "fencing-token": "6" }, expect: [412] };
    const contestants: Contestant[] = [];
    for (const key of bench.keys(fit(["palisade", "expressFenced", "batchedFenced"], scope))) {
      const server = await bench.server(key);
      await bench.prepare(server, { connections: 64, requests: stored });
      if (server.kind === "ours") contestants.push(bench.contestant(server, { connections: 64, requests: accepted, suffix: ", accepted" }));
      contestants.push(bench.contestant(server, { connections: 64, requests: refused, suffix: ", refused" }));
    }
    await bench.checkpoint();
    return contestants;
  },
};

const OPERATIONS = 100;
const transaction: Requests = {
  method: "POST",
  path: "/v1/transactions",
  headers,
  body: JSON.stringify({
    operations: Array.from({ length: OPERATIONS }, (_, j) => ({
      op: "put",
      resource: `lines/{c}-{i}-${j}`,
      value: { sku: `A-${j}`, count: j },
    })),
  }),
  each: 10,
  expect: [200],
};

/** A hundred puts, beside a hand-written server that compares the tokens of all rows in one statement. */
const transactions: Row = {
  id: "transactions",
  title: `Transactions of ${OPERATIONS} puts`,
  remark: "8 connections, all or nothing, commits on disk; processor times and bytes are of a transaction",
  columns: [{ key: "rowsPerSecond", title: "rows per s", digits: 0 }, walColumn],
  async contestants(bench) {
    const contestants: Contestant[] = [];
    for (const key of bench.keys(["unnestFenced", "palisade"])) {
      const contestant = bench.contestant(await bench.server(key), { connections: 8, requests: transaction });
      const round: Contestant["round"] = async (seconds) => {
        const { figures, ...rest } = await contestant.round(seconds);
        return { ...rest, figures: { ...figures, rowsPerSecond: (OPERATIONS * rest.operations) / rest.seconds } };
      };
      contestants.push({ ...contestant, round });
    }
    return contestants;
  },
};

interface Shape {
  readonly id: string;
  readonly title: string;
  readonly atOnce: number;
  readonly names: Names;
}

const shapes = (id: string, title: string, sizes: readonly number[]): readonly Shape[] =>
  sizes.map((atOnce) => ({ id: `${id}/${atOnce}`, title: `${title}, ${atOnce === 1 ? "one" : atOnce} at once`, atOnce, names: "reused" }));

/** What one process does with a client of the gateway, or by hand: by the library that does it, the server that it asks. */
const asClients =
  (remark: string, rows: readonly Shape[], entrants: readonly (readonly [library: string, server: StyleKey])[]): Measure =>
  async (bench, context) => {
    await using nodes = await LockBench.start(context, { nodes: 3 });
    const urls = nodes.fleet.nodes.map(({ directUrl }) => directUrl).join();
    const all: { readonly key: string; readonly as: string; readonly name: string; readonly server: ComparedServer }[] = [];
    for (const [key, style] of entrants) {
      const server = await bench.open(style, style === "palisade" ? { PALISADE_REDIS_URLS: urls } : {});
      context.use({ [Symbol.asyncDispose]: async () => void (await server.stop()) });
      all.push({ key, as: key, name: "", server });
      if (style === "palisade" && context.beside !== undefined) all.push({ key, as: `${key}-before`, name: " beside it", server });
    }
    for (const { id, title, atOnce, names } of rows) {
      context.progress.begin(title);
      const contestants: Contestant[] = [];
      for (const { key, as, name, server } of all) {
        const own = nodes.processes(1);
        const from = as === key ? {} : { from: context.beside ?? "" };
        await nodes.open(own, key, { as, server: server.url, ...from });
        const load = (seconds: number) => own[0]?.ask<Round>({ kind: "load", key: as, seconds, atOnce, names }) as Promise<Round>;
        const contestant = nodes.contestant(key, own, load);
        const processes = { ...contestant.processes, server: () => [server.pid], postgres: () => pidsOf(bench.postgres) };
        contestants.push({ ...contestant, name: `${contestant.name}${name}`, processes });
      }
      const compared = atOnce === 1 ? "p50Us" : "perSecond";
      await context.compare({ id, title, remark, effort: context.effort(EFFORT), contestants, compared, reference: "best peer" });
    }
  };

const cycles = asClients(
  `lock, read, write ${bytes} bytes, release; three masters, which the gateway asks as well, commits on disk`,
  [
    ...shapes("cycle", "The whole cycle", [1, 16, 64]),
    { id: "cycle/hot", title: "The whole cycle, 16 at once on one resource", atOnce: 16, names: "hot" },
  ],
  [
    ["cycle", "palisade"],
    ["cycleByHand", "express"],
  ],
);

const clients = asClients(`the same PUT of ${bytes} bytes to the gateway`, shapes("client-put", "PUT through the client", [1, 16]), [
  ["clientPut", "palisade"],
  ["barePut", "palisade"],
]);

/** What an operation costs as the table grows: PUTs and GETs of random resources in tables of so many. */
const growing =
  (part: string, counts: readonly number[]): Measure =>
  async (bench, context) => {
    const opened: (ComparedServer & { readonly count: number })[] = [];
    context.progress.begin("PUT and GET in a growing table");
    try {
      for (const usual of counts) {
        const [name, count] = [`${shown(usual, 0)} resources`, context.count(usual)];
        context.progress.step(`filling ${name}`);
        const server = { ...(await bench.open("palisade")), name, count };
        opened.push(server);
        await fill(server, count);
      }
      const requests = {
        put: { method: "PUT", path: "/v1/resources/grown/{r}", headers, body: '{"n":2,"status":"paid"}', expect: [200] },
        get: { method: "GET", path: "/v1/resources/grown/{r}", expect: [200] },
      } as const;
      const row = (kind: "put" | "get"): Row => ({
        id: `${part}/${kind}`,
        title: `${kind.toUpperCase()} of a random resource in a growing table`,
        remark: "16 connections, small documents, commits on disk",
        compared: "p50Us",
        columns: kind === "put" ? [walColumn] : [],
        contestants: async () =>
          opened.map((server) => bench.contestant(server, { connections: 16, requests: { ...requests[kind], among: server.count } })),
      });
      await measured([row("put"), row("get")])(bench, context);
    } finally {
      for (const server of opened) await server.stop();
    }
  };

async function fill({ databaseUrl }: ComparedServer, count: number): Promise<void> {
  await using client = await connectTo(databaseUrl);
  await client.query(
    `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, value, updated_at)
       select 'grown/' || i, 7, 0, 1, 1, 'put', false, '{"n":1,"status":"paid"}', now() from generate_series(0, ${count - 1}) i`,
  );
  await client.query("vacuum (analyze) palisade.resources");
  await client.query("checkpoint");
}

/** On tables that Citus distributes, by the number of workers, beside the same Postgres without it. */
const citus: Row = {
  id: "citus",
  title: "PUT on Citus, by the number of workers",
  remark: "64 connections, 3200 resources, commits on disk, the coordinator and all workers on this machine",
  effort: { rounds: 5, seconds: 2 },
  columns: [],
  async contestants({ client }, context) {
    const requests = put(JSON.stringify({ status: "paid", total: 4_200, currency: "EUR" }));
    const contestants: Contestant[] = [];
    for (const workers of [0, 1, 2, 4]) {
      const cluster = context.use(await CitusCluster.start({ workers, durable: true }));
      if (workers === 0) context.note("citus", cluster.description);
      const { url } = await cluster.createDatabase({ name: "bench" });
      const env = { DATABASE_URL: url, PALISADE_POOL_SIZE: "20" };
      if (workers > 0)
        await promisify(execFile)(process.execPath, [gatewayProgram, "migrate", "--citus"], { env: { ...process.env, ...env } });
      const name = workers === 0 ? "plain Postgres" : `${workers} ${workers === 1 ? "worker" : "workers"}`;
      const gateway = await startServer(name, gatewayProgram, env);
      context.use({ [Symbol.asyncDispose]: async () => void (await gateway.stop()) });
      contestants.push({
        name,
        kind: "ours",
        does: "compares token, sequence and revision; many requests in one statement",
        processes: {
          client: () => [client.pid],
          server: () => [gateway.pid],
          postgres: () => pidsOf(cluster.coordinator),
          workers: () => cluster.workers.flatMap((worker) => [...pidsOf(worker)]),
        },
        round: (seconds) => client.ask<Round>({ url: gateway.url, connections: 64, seconds, requests }),
      });
    }
    return contestants;
  },
};

let started: Promise<GatewayBench> | undefined;

/** The servers are started by the first part that asks, and end with the run. */
const part = (name: string, [from, what]: readonly [from: Part["from"], what: string], measure: Measure): Part => ({
  name,
  what,
  from,
  async run(context) {
    started ??= GatewayBench.start(context).then((bench) => context.use(bench));
    await measure(await started, context);
  },
});

const ofPuts = "PUTs over 64 connections and one: fenced, beside hand-written servers without a token, and the ceiling";
const ofTransactions = "a hundred puts in one transaction, beside one statement that compares all tokens";
const ofCitus = "PUTs on 1, 2 and 4 workers of Citus, beside the same Postgres without it; needs PALISADE_TEST_CITUS";

export const gatewayParts: readonly Part[] = [
  part("puts", ["quick", ofPuts], measured(puts)),
  part("gets", ["quick", "GETs over 64 connections and one"], measured(gets)),
  part("hot-key", ["quick", "PUTs of one resource"], measured([hotKey])),
  part("refusals", ["quick", "what a refused write costs, beside an accepted one; its bytes in the log"], measured([refusals])),
  part("transactions", ["quick", ofTransactions], measured([transactions])),
  part(
    "cycle",
    ["usual", "withResource, one, 16 and 64 at once and on one resource, beside redlock 5 with Express and pg by hand"],
    cycles,
  ),
  part("client-put", ["usual", "client.put beside bare node:http: processor time of the client"], clients),
  part("sizes", ["usual", "PUTs and GETs of 0.1, 1, 10 and 100 kB"], measured(sizes)),
  part("table-size", ["usual", "PUT and GET among 10³ to 10⁶ resources"], growing("table-size", [1_000, 10_000, 100_000, 1_000_000])),
  part("largest-table", ["all", "PUT and GET among 10³ and 10⁷ resources"], growing("largest-table", [1_000, 10_000_000])),
  part("citus", ["named", ofCitus], measured([citus])),
];

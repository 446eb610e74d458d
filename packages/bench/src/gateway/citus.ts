// PUTs through one gateway on tables that Citus distributes, by the number of workers, beside the
// same Postgres without it. All servers are on this machine.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { CitusCluster, gatewayProgram } from "@palisade/testkit";
import type { Contestant, Round } from "../measure/comparison.js";
import type { Context } from "../measure/part.js";
import { type GatewayBench, pidsOf, startServer } from "./gateway-bench.js";
import type { Requests } from "./load-client.js";

const WORKERS = [1, 2, 4];
const CONNECTIONS = 64;

const puts: Requests = {
  method: "PUT",
  path: "/v1/resources/orders/{c}-{i}",
  headers: { "content-type": "application/json", "fencing-token": "7" },
  body: JSON.stringify({ status: "paid", total: 4_200, currency: "EUR" }),
  each: 50,
  expect: [200, 201],
};

interface Opened {
  readonly contestant: Contestant;
  close(): Promise<void>;
}

/** The tables of `databaseUrl` are as they are to be. */
async function open(
  { client }: GatewayBench,
  cluster: CitusCluster,
  on: { readonly name: string; readonly databaseUrl: string },
): Promise<Opened> {
  const gateway = await startServer(on.name, gatewayProgram, { DATABASE_URL: on.databaseUrl, PALISADE_POOL_SIZE: "20" });
  return {
    contestant: {
      name: on.name,
      kind: "ours",
      does: "compares token, sequence and revision; many requests in one statement",
      processes: {
        client: () => [client.pid],
        server: () => [gateway.pid],
        postgres: () => pidsOf(cluster.coordinator),
        workers: () => cluster.workers.flatMap((worker) => [...pidsOf(worker)]),
      },
      round: (seconds) => client.ask<Round>({ urls: [gateway.url], connections: CONNECTIONS, seconds, requests: puts }),
    },
    close: async () => void (await gateway.stop()),
  };
}

async function distributed(bench: GatewayBench, cluster: CitusCluster): Promise<Opened> {
  const { url: databaseUrl } = await cluster.createDatabase({ name: "bench" });
  await promisify(execFile)(process.execPath, [gatewayProgram, "migrate", "--citus"], {
    env: { ...process.env, DATABASE_URL: databaseUrl },
  });
  const count = cluster.workers.length;
  return await open(bench, cluster, { name: `${count} ${count === 1 ? "worker" : "workers"}`, databaseUrl });
}

export async function measureCitus(bench: GatewayBench, context: Context): Promise<void> {
  const title = "PUT on Citus, by the number of workers";
  context.progress.begin(title);
  const clusters: CitusCluster[] = [];
  const opened: Opened[] = [];
  try {
    for (const workers of [0, ...WORKERS]) clusters.push(await CitusCluster.start({ workers, durable: true }));
    const [plain, ...others] = clusters;
    if (plain === undefined) throw new Error("invariant: the first cluster has no workers");
    const { url: databaseUrl } = await plain.createDatabase({ name: "bench" });
    opened.push(await open(bench, plain, { name: "plain Postgres", databaseUrl }));
    for (const cluster of others) opened.push(await distributed(bench, cluster));
    context.note("citus", plain.description);
    await context.compare({
      id: "citus",
      title,
      remark: `${CONNECTIONS} connections, ${CONNECTIONS * 50} resources, commits on disk, the coordinator and all workers on this machine`,
      effort: context.effort({ rounds: 5, seconds: 2 }),
      contestants: opened.map(({ contestant }) => contestant),
      compared: "perSecond",
    });
  } finally {
    for (const one of opened) await one.close();
    for (const cluster of clusters) await cluster.stop();
  }
}

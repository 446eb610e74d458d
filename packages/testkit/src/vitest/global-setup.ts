// Starts the servers that all files of a vitest project share, hands out their addresses and stops
// them at the end. vitest runs it only when a file of that project is going to run. A test that
// breaks a server starts its own.
import type { TestProject } from "vitest/node";
import { clockShim } from "../clock/wall-clock.js";
import type { ClusterWorker } from "../postgres/databases.js";
import { CitusCluster, PostgresServer } from "../postgres/server.js";
import { allStarted } from "../process/all-started.js";
import { RedisFleet } from "../redis/fleet.js";

/** Their addresses, handed to every test file. */
export interface SharedServers {
  /** The superuser's URL of the shared Postgres. */
  readonly postgresUrl: string;
  /** Of a Citus cluster, whose coordinator `postgresUrl` is; otherwise empty. */
  readonly workers: readonly ClusterWorker[];
  /** Through the proxies of the shared fleet, node 1 first. */
  readonly redisUrls: readonly string[];
}

declare module "vitest" {
  interface ProvidedContext {
    palisadeServers: SharedServers;
  }
}

const SHARED_NODES = 5;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const startedAt = performance.now();
  const [postgres, fleet] = await allStarted<[PostgresServer | CitusCluster, RedisFleet]>([
    sharedPostgres(project.name),
    // A shared node is never killed, so nothing has to reach its disk.
    RedisFleet.start({ nodes: SHARED_NODES, appendfsync: "no", clock: "real" }),
  ]);
  // Made once here, not by every worker at a time; tests that need it say if it cannot be made.
  await clockShim();
  project.provide("palisadeServers", { postgresUrl: postgres.url, workers: postgres.joined, redisUrls: fleet.urls });
  console.log(`shared servers, ready in ${Math.round(performance.now() - startedAt)} ms: ${postgres.description}; ${fleet.description}`);
  return async () => {
    await Promise.all([postgres.stop(), fleet.stop()]);
  };
}

/** What the project of this name runs on. */
function sharedPostgres(projectName: string): Promise<PostgresServer | CitusCluster> {
  // Autovacuum would visit the databases while they are copied and dropped, and each visit costs a
  // tenth of a second of waiting.
  const settings = { autovacuum: "off" };
  return projectName === "citus" ? CitusCluster.start({ settings }) : PostgresServer.start({ settings });
}

// The addresses that the global set-up hands to every test file.
import { inject } from "vitest";
import type { ClusterWorker } from "../postgres/databases.js";

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

/** The shared servers, or what to do about their absence. */
export function sharedServers(): SharedServers {
  const servers = inject("palisadeServers");
  if (servers === undefined)
    throw new Error("No shared servers: this file has to run in the vitest project whose globalSetup is the testkit's global-setup.ts");
  return servers;
}

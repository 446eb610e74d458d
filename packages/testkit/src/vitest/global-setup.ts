// Starts the servers that all files of a vitest project share, hands out their addresses and stops them at the end. vitest runs it only when a file of
// that project is going to run. It must not break the servers: a test that wants to break one starts its own.
import type { TestProject } from "vitest/node";
import { PostgresServer } from "../postgres/server.js";
import "./shared-servers.js";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const startedAt = performance.now();
  const postgres = await PostgresServer.start();
  project.provide("palisadeServers", { postgresUrl: postgres.url, redisUrls: [] });
  console.log(`shared servers, ready in ${Math.round(performance.now() - startedAt)} ms: ${postgres.notice}`);
  return async () => {
    await postgres.stop();
  };
}

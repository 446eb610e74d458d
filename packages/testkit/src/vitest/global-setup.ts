// Starts the servers that all files of a vitest project share, hands out their addresses and stops them at the end. vitest runs it only when a file of
// that project is going to run. It must not break the servers: a test that wants to break one starts its own.
import type { TestProject } from "vitest/node";
import { PostgresServer } from "../postgres/server.js";
import { RedisFleet } from "../redis/redis-fleet.js";
import "./shared-servers.js";

const sharedNodes = 5;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const startedAt = performance.now();
  const [postgres, fleet] = await both(
    // Autovacuum would visit the databases while they are copied and dropped, and each visit costs a tenth of a second of waiting.
    PostgresServer.start({ settings: { autovacuum: "off" } }),
    // Nobody kills a shared node, so nothing has to reach its disk.
    RedisFleet.start({ nodes: sharedNodes, appendfsync: "no", clock: "real" }),
  );
  project.provide("palisadeServers", { postgresUrl: postgres.url, redisUrls: fleet.urls });
  console.log(`shared servers, ready in ${Math.round(performance.now() - startedAt)} ms: ${postgres.description}; ${fleet.description}`);
  return async () => {
    await both(postgres.stop(), fleet.stop());
  };
}

/** Waits for both even if one fails, so that nothing is left half started; then reports what failed. */
async function both<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  const outcomes = await Promise.allSettled([first, second]);
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : []));
  if (failures.length > 0) throw new Error(failures.map((failure) => failure.message).join("\n"), { cause: failures[0] });
  return [await first, await second];
}

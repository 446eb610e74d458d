// SIGKILL to every process of a server of the cluster while two gateways write.
import { migrate } from "@palisade/gateway";
import { CitusCluster, type PostgresServer } from "@palisade/testkit";
import { describe, expect, test } from "@palisade/testkit/vitest";
import { distribute } from "../../src/store/migrate.js";
import { brokenThroughDatabaseCrashes } from "../support/histories.js";

describe("G3 servers of Citus are killed under load", () => {
  test.for(["worker", "coordinator"] as const)(
    "G3 every answer is true before, during and after crashes of a %s",
    async (which, { onTestFinished }) => {
      const cluster = await CitusCluster.start();
      onTestFinished(() => cluster.stop());
      const { url: databaseUrl } = await cluster.createDatabase();
      await migrate(databaseUrl);
      await distribute(databaseUrl);
      const crashes = [0, 1].map((round) => async (): Promise<void> => {
        const server = (which === "worker" ? cluster.workers[round] : cluster.coordinator) as PostgresServer;
        await server.crash();
        await server.restart();
      });
      expect(await brokenThroughDatabaseCrashes(databaseUrl, crashes, 100)).toEqual([]);
    },
  );
});

// The servers that are compared: the gateway and a hand-written handler on one Postgres, each a
// process with its own database.
import { PostgresServer, takePort } from "@palisade/testkit";
import { type ServerProcess, startServer } from "./server-process.js";

/** Connections to Postgres, the same for both. */
const POOL_SIZE = 20;

export interface ComparedServers extends AsyncDisposable {
  readonly postgres: PostgresServer;
  readonly gateway: ServerProcess;
  readonly gatewayDatabase: string;
  readonly plain: ServerProcess;
}

export async function openServers(): Promise<ComparedServers> {
  // Commits reach the disk, as they do in production.
  const postgres = await PostgresServer.start({ durable: true });
  const [fenced, unfenced] = await Promise.all([postgres.createDatabase(), postgres.createDatabase()]);
  const gateway = await startServer({
    name: "palisade-gateway",
    file: new URL("../../../gateway/dist/main.js", import.meta.url),
    env: { DATABASE_URL: fenced.url, PALISADE_LOG_LEVEL: "warn", PALISADE_POOL_SIZE: String(POOL_SIZE) },
    port: await takePort(),
    adminPort: await takePort(),
  });
  const plain = await startServer({
    name: "express + pg, one unfenced upsert per request",
    file: new URL("plain-server.js", import.meta.url),
    env: { DATABASE_URL: unfenced.url, POOL_SIZE: String(POOL_SIZE) },
    port: await takePort(),
  });
  return {
    postgres,
    gateway,
    gatewayDatabase: fenced.url,
    plain,
    async [Symbol.asyncDispose]() {
      await Promise.all([gateway.stop(), plain.stop()]);
      await postgres.stop();
    },
  };
}

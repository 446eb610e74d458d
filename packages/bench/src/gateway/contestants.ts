// The gateway and the hand-written handler, side by side on one Postgres, each in a process of its own with a database of its own.
import { PostgresServer, takePort } from "@palisade/testkit";
import { type ServerProcess, startServer } from "./server-process.js";

/** Both get as many connections to Postgres. */
const poolSize = 20;

export interface Arena extends AsyncDisposable {
  readonly postgres: PostgresServer;
  readonly gateway: ServerProcess;
  readonly gatewayDatabase: string;
  readonly plain: ServerProcess;
}

export async function openArena(): Promise<Arena> {
  // Commits reach the disk, as they do in production.
  const postgres = await PostgresServer.start({ durable: true });
  const [fenced, unfenced] = await Promise.all([postgres.createDatabase(), postgres.createDatabase()]);
  const gateway = await startServer({
    name: "palisade-gateway",
    file: new URL("../../../gateway/dist/main.js", import.meta.url),
    env: { DATABASE_URL: fenced.url, PALISADE_LOG_LEVEL: "warn", PALISADE_POOL_SIZE: String(poolSize) },
    port: await takePort(),
    adminPort: await takePort(),
  });
  const plain = await startServer({
    name: "express + pg, one unfenced upsert per request",
    file: new URL("plain-server.js", import.meta.url),
    env: { DATABASE_URL: unfenced.url, POOL_SIZE: String(poolSize) },
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

// The servers and the gateway, started in their order and ended in the opposite one. What cannot be
// started ends the rest, and says what would help.
import { createGateway, hashApiKey } from "@palisade/gateway";
import { localPostgres, localRedis, wasmRedis } from "@palisade/testkit";
import type { DevOptions } from "./command-line.js";

/** Everybody knows it; the gateway listens on loopback only. */
export const API_KEY = "palisade-on-this-machine-only";
const NODES = 5;

export interface Stack extends AsyncDisposable {
  readonly gatewayUrl: string;
  readonly adminUrl: string;
  readonly redisUrls: readonly string[];
  readonly databaseUrl: string;
  /** One line for each kind of server. */
  readonly description: readonly string[];
}

type Started<Value> = { readonly value: Value; readonly description: string };
/** Ends what was started, the last one first. */
type Ends = (() => Promise<unknown>)[];

export async function startStack(options: DevOptions): Promise<Stack> {
  const ends: Ends = [];
  const end = async (): Promise<void> => {
    for (const stop of ends.splice(0).reverse()) await stop();
  };
  try {
    const both = await Promise.allSettled([startRedis(options, ends), startPostgres(options, ends)]);
    const failed = both.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const [redis, postgres] = both.map((one) => (one as PromiseFulfilledResult<Started<readonly string[]>>).value);
    const [redisUrls, databaseUrl = ""] = [redis?.value ?? [], postgres?.value[0]];
    const { gatewayUrl, adminUrl } = await startGateway({ port: options.port, redisUrls, databaseUrl }, ends);
    const description = [redis, postgres].map((one) => one?.description ?? "");
    return { gatewayUrl, adminUrl, redisUrls, databaseUrl, description, [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

async function startRedis({ redisUrls, redisPort }: DevOptions, ends: Ends): Promise<Started<readonly string[]>> {
  if (redisUrls !== undefined) return { value: redisUrls, description: `${redisUrls.length} × Redis, given` };
  const local = await localRedis.describe().catch((error: unknown) => {
    // A server that was asked for by its path is never replaced in silence.
    if (process.env.REDIS_SERVER_BIN) throw error;
    return undefined;
  });
  const provider = local === undefined ? wasmRedis : localRedis;
  const description = `${NODES} × ${local ?? (await wasmRedis.describe())}`;
  const started = await Promise.allSettled(
    Array.from({ length: NODES }, async (_, index) => {
      const server = await provider.start({
        name: `n${index + 1}`,
        appendfsync: "no", // They end with this program, and forget everything.
        config: {},
        clock: "real",
        port: redisPort === 0 ? undefined : redisPort + index,
      });
      ends.push(() => server.stop());
      return `redis://${server.host}:${server.port}`;
    }),
  );
  const failed = started.find((one) => one.status === "rejected");
  if (failed !== undefined) throw helped(failed.reason, "--redis-port");
  return { value: started.map((one) => (one as PromiseFulfilledResult<string>).value), description };
}

async function startPostgres({ databaseUrl, postgresPort }: DevOptions, ends: Ends): Promise<Started<readonly string[]>> {
  if (databaseUrl !== undefined) return { value: [databaseUrl], description: "Postgres, given" };
  const description = await localPostgres.describe().catch((cause: Error) => {
    throw new Error(`${cause.message}\n${ELSEWHERE}`, { cause });
  });
  const port = postgresPort === 0 ? undefined : postgresPort;
  const server = await localPostgres.start({ durable: false, settings: {}, port }).catch((error: unknown) => {
    throw helped(error, "--postgres-port");
  });
  ends.push(() => server.stop());
  return { value: [`postgres://postgres@${server.host}:${server.port}/postgres`], description };
}

const ELSEWHERE = `  docker run --rm -p 5432:5432 -e POSTGRES_PASSWORD=palisade postgres:17
      and npx @palisade/dev --postgres postgres://postgres:palisade@127.0.0.1:5432/postgres`;

interface GatewayParts {
  readonly port: number;
  readonly redisUrls: readonly string[];
  readonly databaseUrl: string;
}

async function startGateway({ port, redisUrls, databaseUrl }: GatewayParts, ends: Ends): Promise<Pick<Stack, "gatewayUrl" | "adminUrl">> {
  const gateway = createGateway({
    databaseUrl,
    redisUrls: [...redisUrls],
    host: "127.0.0.1",
    port,
    adminPort: port === 0 ? 0 : port + 1,
    apiKeys: [{ id: "this-machine-only", sha256: hashApiKey(API_KEY), scopes: ["read:", "write:", "seal:", "admin:", "observe:"] }],
    page: "on",
    history: "on",
    logLevel: "error",
  });
  ends.push(() => gateway.close());
  await gateway.listen().catch((error: unknown) => {
    throw helped(error, "--port");
  });
  return { gatewayUrl: gateway.url ?? "", adminUrl: gateway.adminUrl ?? "" };
}

/** A port that is taken is the one failure that another option ends. */
function helped(error: unknown, option: string): Error {
  const { message } = error as Error;
  const isTaken = /EADDRINUSE|is taken/.test(message);
  return isTaken ? new Error(`${message}. Choose another port with ${option}.`, { cause: error }) : (error as Error);
}

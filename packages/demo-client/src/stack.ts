// The whole stack in one process: the servers, a gateway in front of them, and two leases of one resource, so that there is a newer and an older token to try.
// Decides nothing about what is shown.
import { createGateway, type Gateway } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";
import { type Servers, startServers } from "./servers.js";

export interface Stack extends AsyncDisposable {
  readonly servers: Servers;
  readonly gateway: Gateway;
}

export interface TwoTokens {
  readonly older: number;
  readonly newer: number;
}

export async function startStack(ports: { readonly port: number; readonly adminPort: number }): Promise<Stack> {
  const servers = await startServers();
  const gateway = createGateway({ ...ports, databaseUrl: servers.postgres.url, redisUrls: servers.redis.urls, logLevel: "error" });
  const stack = {
    servers,
    gateway,
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await servers[Symbol.asyncDispose]();
    },
  };
  await gateway.listen().catch(async (error: unknown) => {
    await stack[Symbol.asyncDispose]();
    throw explained(error);
  });
  return stack;
}

function explained(error: unknown): unknown {
  const { code, port } = error as NodeJS.ErrnoException & { readonly port?: number };
  return code === "EADDRINUSE"
    ? new Error(`Port ${port} is taken by another program. PORT=0 takes any free ones.`, { cause: error })
    : error;
}

/** Two leases, one after the other; both are over when this returns. */
export async function issueTwoTokens(nodes: readonly string[], resource: string): Promise<TwoTokens> {
  const locker = createLocker({ nodes });
  try {
    await locker.ready();
    const take = async (): Promise<number> => {
      const lease = await locker.acquire(resource);
      await lease.release();
      return lease.token;
    };
    return { older: await take(), newer: await take() };
  } finally {
    await locker.close();
  }
}

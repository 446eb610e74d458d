// What a test of the gateway asks for by name: the database of its file, connections, stores,
// gateways in this process and as processes of their own. All of it is closed again.
import { execFile } from "node:child_process";
import { type Gateway, type GatewayConfig, migrate } from "@palisade/gateway";
import { type Child, type ChildExit, FaultProxy, gatewayProgram, startServing, type TestDatabase } from "@palisade/testkit";
import { test as base, type DatabaseTemplate, expect, sharedServers } from "@palisade/testkit/vitest";
import pg from "pg";
import type { FencedStore } from "../../src/fenced-store.js";
import { openStore as openStoreWith, type StoreConfig } from "../../src/fenced-store.js";
import { createGatewayWith, type GatewayLimits } from "../../src/gateway.js";
import { settings } from "../../src/settings/settings.js";
import { distribute } from "../../src/store/distribute.js";

export { afterAll, beforeAll, describe, expect, vi } from "@palisade/testkit/vitest";
export { gatewayProgram };

/** Settings, and limits that are constants for everybody else. */
type TestConfig = GatewayConfig & GatewayLimits;
type StartGateway = (config?: Partial<TestConfig>) => Promise<Gateway>;
type StartProgram = (env: Readonly<Record<string, string>>) => Promise<GatewayProcess>;
export type OpenStore = (config?: Partial<StoreConfig>) => Promise<FencedStore>;
/** A connection of the test; one per call. */
export type Connect = (url?: string) => Promise<pg.Client>;

/** The program palisade-gateway as a process of its own, to be signalled, killed and restarted. */
export interface GatewayProcess {
  readonly child: Child;
  readonly url: string;
  readonly adminUrl: string;
  /** Every line of the log so far. */
  readonly lines: readonly string[];
  /** Sends SIGTERM and waits for the exit, without a limit. */
  stop(): Promise<ChildExit>;
}

/**
 * Timeouts for stores and gateways of tests that are not about timeouts. The defaults are for
 * operators: on a machine with ten times as much work as cores a row may be held for half a second,
 * and a write that gave up there would look like one that the fence refused. A test about a limit
 * sets that limit. Such a long wait for a row also outlasts Postgres's deadlock check, whose victims
 * are run again: a test that promises no deadlock must check that none was run again.
 */
export const longTimeouts = {
  connectTimeoutMs: 20_000,
  readTimeoutMs: 20_000,
  writeTimeoutMs: 20_000,
  batchLockWaitMs: 10_000,
  maxWaitMs: 20_000,
} as const;

export const quiet = { host: "127.0.0.1", port: 0, adminPort: 0, logLevel: "silent", lastRequestMs: 0, ...longTimeouts } as const;

let names = 0;

/** A resource name that no other test of this process has. */
export function uniqueName(prefix = "r"): string {
  names += 1;
  return `${prefix}/${process.pid}-${names}`;
}

/** expect.poll with a timeout for a busy machine. */
export function eventually(read: () => unknown): ReturnType<typeof expect.poll> {
  return expect.poll(read, { timeout: 30_000, interval: 10 });
}

export const isOnCitus = (): boolean => sharedServers().workers.length > 0;

/** The database that test files get: migrated, and distributed where the project runs on Citus. */
function gatewayTemplate(): DatabaseTemplate {
  if (!isOnCitus()) return { name: "gateway", migrate };
  return {
    name: "gateway-on-citus",
    migrate: async (url) => {
      await migrate(url);
      await distribute(url);
    },
  };
}

export function createGateway(config: TestConfig): Gateway {
  const wanted = config.apiKeysFile ?? config.jwtSecret ?? config.jwtJwksUrl;
  const open = config.apiKeys === undefined && wanted === undefined ? { apiKeys: "none" } : {};
  const isSetting = ([name]: readonly [string, unknown]): boolean => name in settings;
  const entries = Object.entries(config);
  return createGatewayWith(Object.fromEntries(entries.filter((entry) => !isSetting(entry))), {
    ...open,
    ...Object.fromEntries(entries.filter(isSetting)),
  } as unknown as GatewayConfig);
}

export const test = base
  .extend("databaseTemplate", { scope: "file" }, async () => gatewayTemplate())
  .extend("openStore", ({ database }: { database: TestDatabase }, { onCleanup }): OpenStore => {
    const opened: FencedStore[] = [];
    onCleanup(async () => void (await Promise.all(opened.map((store) => store.close({ drainMs: 0 })))));
    return async (config = {}) => {
      const store = await openStoreWith({ databaseUrl: database.url, ...longTimeouts, ...config });
      opened.push(store);
      return store;
    };
  })
  /** Before the file's database. */
  .extend("proxy", async ({ database }: { database: TestDatabase }, { onCleanup }): Promise<FaultProxy> => {
    const { hostname: host, port } = new URL(database.url);
    const proxy = await FaultProxy.start({ upstream: { host, port: Number(port) } });
    onCleanup(() => proxy.stop());
    return proxy;
  })
  .extend("store", async ({ openStore }: { openStore: OpenStore }): Promise<FencedStore> => await openStore())
  .extend("connect", ({ database }: { database: TestDatabase }, { onCleanup }): Connect => {
    const clients: pg.Client[] = [];
    onCleanup(async () => void (await Promise.all(clients.map((client) => client.end()))));
    return async (connectionString = database.url) => {
      const client = new pg.Client({ connectionString });
      client.on("error", () => {}); // A test may cut it; its statement reports that.
      await client.connect();
      clients.push(client);
      return client;
    };
  })
  .extend("gateway", { scope: "file" }, async ({ database }: { database: TestDatabase }, { onCleanup }): Promise<Gateway> => {
    const gateway = createGateway({ ...quiet, databaseUrl: database.url, history: "on" });
    await gateway.listen();
    onCleanup(async () => void (await gateway.close()));
    return gateway;
  })
  .extend("startGateway", ({ database }, { onCleanup }): StartGateway => {
    const started: Gateway[] = [];
    onCleanup(async () => void (await Promise.all(started.map((gateway) => gateway.close()))));
    return async (config = {}) => {
      const gateway = createGateway({ ...quiet, databaseUrl: database.url, ...config });
      started.push(gateway);
      await gateway.listen();
      return gateway;
    };
  })
  .extend("startProgram", ({ task: _test }, { onCleanup }): StartProgram => {
    const started: Child[] = [];
    onCleanup(async () => void (await Promise.all(started.map((child) => child.kill()))));
    return async (given) => {
      const lines: string[] = [];
      const env = { PALISADE_WRITE_TIMEOUT_MS: "50000", ...given }; // The other waits are shares of it.
      const { child, url, adminUrl } = await startServing({ env, onLine: (line) => lines.push(line) });
      started.push(child);
      const stop = (): Promise<ChildExit> => {
        child.signal("SIGTERM");
        return child.waitForExit();
      };
      return { child, url, adminUrl, lines, stop };
    };
  });

export interface ProgramResult {
  readonly code: number | string | null | undefined;
  readonly out: string;
  readonly err: string;
}

/** Runs a command of the program to its end. */
export function runProgram(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ProgramResult> {
  return new Promise((resolve) => {
    execFile(process.execPath, [gatewayProgram, ...args], { env: { ...process.env, ...env } }, (error, out, err) =>
      resolve({ code: error === null ? 0 : error.code, out, err }),
    );
  });
}

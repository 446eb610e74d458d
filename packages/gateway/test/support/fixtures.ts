// A gateway for a test file, over a database of its own, and further ones on request, in this
// process or in their own. All are closed again.
import type { Gateway, GatewayConfig } from "@palisade/gateway";
import type { TestDatabase } from "@palisade/testkit";
import { test as base, expect } from "@palisade/testkit/vitest";
import { createGatewayWith, type GatewayLimits } from "../../src/gateway.js";
import { settings } from "../../src/settings/settings.js";
import { type GatewayProcess, startProgram } from "./gateway-process.js";
import { longTimeouts } from "./long-timeouts.js";
import { gatewayTemplate } from "./template.js";

export { afterAll, beforeAll, describe, expect } from "@palisade/testkit/vitest";
export { uniqueName } from "./unique-name.js";

/** Settings, and limits that are constants for everybody else. */
export type TestConfig = GatewayConfig & GatewayLimits;
export type StartGateway = (config?: Partial<TestConfig>) => Promise<Gateway>;
/** `main` is the program of another version. */
export type StartProgram = (env: Readonly<Record<string, string>>, main?: string) => Promise<GatewayProcess>;

/** expect.poll with a timeout for a busy machine. */
export function eventually(read: () => unknown): ReturnType<typeof expect.poll> {
  return expect.poll(read, { timeout: 30_000, interval: 10 });
}

export const quiet = { host: "127.0.0.1", port: 0, adminPort: 0, logLevel: "silent", lastRequestMs: 0, ...longTimeouts } as const;

export function createGateway(config: TestConfig): Gateway {
  const isSetting = ([name]: readonly [string, unknown]): boolean => name in settings;
  const entries = Object.entries(config);
  return createGatewayWith(
    Object.fromEntries(entries.filter((entry) => !isSetting(entry))),
    Object.fromEntries(entries.filter(isSetting)) as unknown as GatewayConfig,
  );
}

export const test = base
  .extend("databaseTemplate", { scope: "file" }, async () => gatewayTemplate())
  .extend("gateway", { scope: "file" }, async ({ database }: { database: TestDatabase }, { onCleanup }): Promise<Gateway> => {
    const gateway = createGateway({ ...quiet, databaseUrl: database.url, history: "on" });
    await gateway.listen();
    onCleanup(async () => {
      await gateway.close();
    });
    return gateway;
  })
  .extend("startGateway", ({ database }, { onCleanup }): StartGateway => {
    const started: Gateway[] = [];
    onCleanup(async () => {
      await Promise.all(started.map((gateway) => gateway.close()));
    });
    return async (config = {}) => {
      const gateway = createGateway({ ...quiet, databaseUrl: database.url, ...config });
      started.push(gateway);
      await gateway.listen();
      return gateway;
    };
  })
  .extend("startProgram", ({ task: _test }, { onCleanup }): StartProgram => {
    const started: GatewayProcess[] = [];
    onCleanup(async () => {
      await Promise.all(started.map(({ child }) => child.kill()));
    });
    return async (env, main) => {
      const program = await startProgram(env, main);
      started.push(program);
      return program;
    };
  });

// Starts the program palisade-gateway as a process of its own, on free ports of this machine.
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Child, startChild } from "@palisade/testkit";

export const gatewayProgram = join(createRequire(import.meta.url).resolve("@palisade/gateway/package.json"), "..", "dist", "main.js");

export interface GatewayOptions {
  readonly databaseUrl: string;
  /** Absent: tokens are taken on trust. */
  readonly redisUrls?: readonly string[];
  readonly namespace?: string;
  readonly durability?: "local" | "sync";
  /** Whether a restored database is refused until it was recovered. */
  readonly restoreCheck?: "on" | "off";
}

/** In a scenario a slow machine must not look like a broken one. */
const longTimeouts = {
  PALISADE_CONNECT_TIMEOUT_MS: "30000",
  PALISADE_HEADERS_TIMEOUT_MS: "60000",
  PALISADE_READ_TIMEOUT_MS: "30000",
  PALISADE_WRITE_TIMEOUT_MS: "60000",
};

export interface GatewayProcess extends AsyncDisposable {
  readonly url: string;
  readonly adminUrl: string;
}

interface LogLine {
  readonly msg?: string;
  readonly url?: string;
  readonly adminUrl?: string;
}

/** Starts it and waits until it says where it listens. */
export async function startGateway(options: GatewayOptions): Promise<GatewayProcess> {
  let onListening = (_line: LogLine): void => undefined;
  const listening = new Promise<LogLine>((resolve) => {
    onListening = resolve;
  });
  const child = startChild({
    command: process.execPath,
    args: [gatewayProgram],
    env: environmentOf(options),
    name: "palisade-gateway",
    onLine: (line) => {
      const entry = parsed(line);
      if (entry?.msg === "listening") onListening(entry);
    },
  });
  const { url, adminUrl } = await Promise.race([listening, child.waitForExit().then((): LogLine => ({}))]);
  if (url === undefined || adminUrl === undefined) throw new Error(reasonOf(child));
  return { url, adminUrl, [Symbol.asyncDispose]: async () => void (await child.stop()) };
}

function reasonOf(child: Child): string {
  return `The gateway did not come up: ${child.howItEnded()}`;
}

function environmentOf(options: GatewayOptions): Record<string, string> {
  const { databaseUrl, redisUrls, namespace, durability, restoreCheck } = options;
  // What was set for other gateways must not reach this one; an empty variable counts as absent.
  const inherited = Object.keys(process.env).filter((name) => name.startsWith("PALISADE_") || name === "ADMIN_HOST");
  return {
    ...Object.fromEntries(inherited.map((name) => [name, ""])),
    DATABASE_URL: databaseUrl,
    HOST: "127.0.0.1",
    PORT: "0",
    ADMIN_PORT: "0",
    PALISADE_LOG_LEVEL: "info",
    ...longTimeouts,
    ...(redisUrls === undefined ? {} : { PALISADE_REDIS_URLS: redisUrls.join(",") }),
    ...(namespace === undefined ? {} : { PALISADE_NAMESPACE: namespace }),
    ...(durability === undefined ? {} : { PALISADE_DURABILITY: durability }),
    ...(restoreCheck === undefined ? {} : { PALISADE_RESTORE_CHECK: restoreCheck }),
  };
}

function parsed(line: string): LogLine | undefined {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return undefined;
  }
}

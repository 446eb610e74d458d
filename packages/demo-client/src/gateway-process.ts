// The program palisade-gateway as a process of its own, on free ports of this machine. Decides only how it is configured.
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Child, startChild } from "@palisade/testkit";

const program = join(createRequire(import.meta.url).resolve("@palisade/gateway/package.json"), "..", "dist", "main.js");

export interface GatewayPlan {
  readonly databaseUrl: string;
  /** Absent: tokens are taken on trust. */
  readonly redisUrls?: readonly string[];
  readonly namespace?: string;
  readonly port?: number;
  readonly adminPort?: number;
  /** Entries for PALISADE_API_KEYS, as JSON text. */
  readonly apiKeys?: string;
  readonly durability?: "local" | "sync";
  /** "patient" when absent: in a story a slow machine must not look like a broken one. */
  readonly timeouts?: "patient" | "usual";
}

const patience = { CONNECT: 30_000, HEADERS: 60_000, READ: 30_000, WRITE: 60_000 };

export interface GatewayProcess extends AsyncDisposable {
  readonly url: string;
  readonly adminUrl: string;
  readonly child: Child;
}

interface LogLine {
  readonly msg?: string;
  readonly url?: string;
  readonly adminUrl?: string;
}

/** Starts it and waits until it says where it listens. */
export async function startGateway(plan: GatewayPlan): Promise<GatewayProcess> {
  let heard = (_line: LogLine): void => undefined;
  const listening = new Promise<LogLine>((resolve) => {
    heard = resolve;
  });
  const child = startChild({
    command: process.execPath,
    args: [program],
    env: environment(plan),
    name: "palisade-gateway",
    onLine: (line) => {
      const entry = parsed(line);
      if (entry?.msg === "listening") heard(entry);
    },
  });
  const { url, adminUrl } = await Promise.race([listening, child.waitForExit().then((): LogLine => ({}))]);
  if (url === undefined || adminUrl === undefined) throw new Error(whyNot(child));
  return { url, adminUrl, child, [Symbol.asyncDispose]: async () => void (await child.stop()) };
}

function whyNot(child: Child): string {
  const taken = /EADDRINUSE\D*(?:[\d.]+|::1):(\d+)/.exec(child.lastLines().join("\n"))?.[1];
  if (taken !== undefined) return `Port ${taken} is taken by another program. PORT=0 takes any free ones.`;
  return `The gateway did not come up: ${child.obituary()}`;
}

function environment({
  databaseUrl,
  redisUrls,
  namespace,
  port = 0,
  adminPort = 0,
  apiKeys,
  durability,
  timeouts = "patient",
}: GatewayPlan): Record<string, string> {
  // What was set for other gateways must not reach this one; an empty variable counts as absent.
  const inherited = Object.keys(process.env).filter((name) => name.startsWith("PALISADE_") || name === "ADMIN_HOST");
  return {
    ...Object.fromEntries(inherited.map((name) => [name, ""])),
    DATABASE_URL: databaseUrl,
    HOST: "127.0.0.1",
    PORT: String(port),
    ADMIN_PORT: String(adminPort),
    PALISADE_LOG_LEVEL: "info",
    ...(timeouts === "usual" ? {} : patientTimeouts),
    ...(redisUrls === undefined ? {} : { PALISADE_REDIS_URLS: redisUrls.join(",") }),
    ...(namespace === undefined ? {} : { PALISADE_NAMESPACE: namespace }),
    ...(apiKeys === undefined ? {} : { PALISADE_API_KEYS: apiKeys }),
    ...(durability === undefined ? {} : { PALISADE_DURABILITY: durability }),
  };
}

const patientTimeouts = Object.fromEntries(Object.entries(patience).map(([what, ms]) => [`PALISADE_${what}_TIMEOUT_MS`, String(ms)]));

function parsed(line: string): LogLine | undefined {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return undefined;
  }
}

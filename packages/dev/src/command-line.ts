// What the program can be told, read before anything is started.
import { numberOf, readArguments, UsageError } from "@palisade/testkit";

export interface DevOptions {
  /** Of the gateway; its probes answer on the next one. 0 takes any free ones. */
  readonly port: number;
  /** Of the first of five nodes; the others follow. 0 takes any free ones. */
  readonly redisPort: number;
  readonly postgresPort: number;
  /** Servers that run already and are used in place of own ones. */
  readonly redisUrls: readonly string[] | undefined;
  readonly databaseUrl: string | undefined;
}

export const usage = `npx @palisade/dev: five Redis masters, Postgres and the gateway on this machine, until Ctrl-C.

  --port N           of the gateway, and N + 1 for its probes. Default: 8080. 0 takes any free ones.
  --redis-port N     of the first of five Redis masters. Default: 7001. 0 takes any free ones.
  --postgres-port N  Default: 7432. 0 takes any free one.
  --redis URL,URL    uses these nodes and starts none
  --postgres URL     uses this database and starts none`;

const options = {
  port: { type: "string", default: "8080" },
  "redis-port": { type: "string", default: "7001" },
  "postgres-port": { type: "string", default: "7432" },
  redis: { type: "string" },
  postgres: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

/** "help" when that was asked for. */
export function readOptions(args: readonly string[]): DevOptions | "help" {
  const { values } = readArguments({ args: [...args], options });
  if (values.help === true) return "help";
  return {
    port: portOf("--port", values.port, 1),
    redisPort: portOf("--redis-port", values["redis-port"], 4),
    postgresPort: portOf("--postgres-port", values["postgres-port"], 0),
    redisUrls: values.redis === undefined ? undefined : urlsOf("--redis", values.redis, /^rediss?:\/\/./),
    databaseUrl: values.postgres === undefined ? undefined : urlsOf("--postgres", values.postgres, /^postgres(ql)?:\/\/./)[0],
  };
}

/** `further` are the ports after it that are taken as well. */
function portOf(option: string, text: string, further: number): number {
  return numberOf(option, text, { least: 0, most: 65_535 - further }) ?? 0;
}

function urlsOf(name: string, text: string, shape: RegExp): readonly string[] {
  const urls = text.split(",").map((url) => url.trim());
  const wrong = urls.find((url) => !shape.test(url));
  if (wrong === undefined) return urls;
  throw new UsageError(
    `${name} takes ${name === "--redis" ? "redis:// URLs, with commas between them" : "a postgres:// URL"}, not ${JSON.stringify(wrong)}.`,
  );
}

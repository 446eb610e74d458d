// The table of settings: name, environment variable, rule, default, meaning. createGateway and its
// types, the environment, --help and docs/settings.md are all read from it. What no operator has a
// reason to move is a constant where it is used. Below it stands how values are read and whether they
// make sense together; that reads no file and no network.
import { databaseUrlFault } from "@palisade/guard/gateway";
import { z } from "zod";
import type { ApiKeyFile } from "../http/api-keys.js";
import { apiKeyFile } from "../http/auth.js";
import { presetLimits } from "../limits.js";

/** How one setting is described. */
export interface Setting<Value = unknown> {
  readonly env: string;
  /** Of zod; the types of the package name only what is used of it. */
  readonly schema: { safeParse(given: unknown): { readonly success: boolean } };
  /** Completes the sentence "NAME must be …". */
  readonly mustBe: string;
  readonly help: string;
  /** What it is when it was not given. */
  readonly fallback?: Value;
  /** In place of `mustBe`: what is wrong with a value that the schema refuses, without showing it. */
  readonly fault?: (given: unknown) => string | undefined;
  /** Its value may hold a password or key and is never shown. */
  readonly secret?: boolean;
  /** How the text of an environment variable becomes a value for the schema; as it is when absent. */
  readonly read?: (text: string) => unknown;
}

type Described<Fallback> = Pick<Setting, "env" | "help"> & { readonly fallback?: Fallback };

function number(described: Described<number> & { readonly range: readonly [number, number] }): Setting<number> {
  const { range, ...rest } = described;
  const [least, most] = range;
  return {
    ...rest,
    schema: z.int().min(least).max(most),
    mustBe: `a whole number from ${least} to ${most}`,
    read: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
  };
}

function choice<const Choice extends string, Fallback extends Choice | undefined = undefined>(
  described: Described<Fallback> & { readonly choices: readonly Choice[] },
): Setting<Choice | Fallback> {
  const { choices, ...rest } = described;
  return { ...rest, schema: z.enum(choices), mustBe: `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}` };
}

function text<Fallback extends string | undefined = undefined>(
  described: Described<Fallback> & Partial<Pick<Setting, "mustBe" | "secret">> & { readonly is?: z.ZodType<string> },
): Setting<string | Fallback> {
  const { is = z.string().min(1).max(255), ...rest } = described;
  return { mustBe: "1 to 255 characters", ...rest, schema: is };
}

const urlOf = (...protocols: string[]): z.ZodType<string> =>
  z.string().refine((url) => URL.canParse(url) && protocols.includes(new URL(url).protocol));

const databaseUrl: Setting<string> = {
  env: "DATABASE_URL",
  help: "The Postgres that holds the resources: one address, which leads to the primary.",
  schema: z.string().refine((url) => databaseUrlFault(url) === undefined),
  fault: (given) => (typeof given === "string" ? databaseUrlFault(given) : undefined),
  mustBe: "a postgres:// URL",
  secret: true,
};

const redisUrls: Setting<readonly string[] | undefined> = {
  env: "PALISADE_REDIS_URLS",
  help: "The nodes of the lock. With them, a token that would raise a fence is first checked to have been issued.",
  schema: z.array(urlOf("redis:", "rediss:")).min(1),
  mustBe: "a comma-separated list of redis:// URLs",
  fault: (given) => (typeof given === "string" ? 'must be an array of redis:// URLs, not text: write text.split(",")' : undefined),
  read: (list) =>
    list
      .split(",")
      .map((url) => url.trim())
      .filter((url) => url !== ""),
  secret: true,
};

const apiKeys: Setting<ApiKeyFile["keys"] | "none" | undefined> = {
  env: "PALISADE_API_KEYS",
  help: "The same entries as JSON text, in place of a file. none is for development: whatever connects from this machine may do everything, also a proxy for callers elsewhere.",
  schema: z.union([apiKeyFile.shape.keys, z.literal("none")]),
  mustBe: 'a JSON array of keys such as [{"id":"worker","sha256":"…","scopes":["write:orders/"]}], or none',
  read: (json) => {
    try {
      return JSON.parse(json);
    } catch {
      return json;
    }
  },
  secret: true,
};

const DAY_MS = 86_400_000;

export const settings = {
  databaseUrl,
  host: text({
    env: "HOST",
    mustBe: "an address or host name",
    help: "Where to listen. With PALISADE_API_KEYS=none only loopback is allowed.",
    fallback: "127.0.0.1",
  }),
  port: number({ env: "PORT", range: [0, 65_535], fallback: 8_080, help: "Port of the API; 0 takes any free one." }),
  adminHost: text({
    env: "ADMIN_HOST",
    mustBe: "an address or host name",
    help: "Where to listen for probes and metrics; the same as HOST when absent.",
  }),
  adminPort: number({
    env: "ADMIN_PORT",
    range: [0, 65_535],
    fallback: 8_081,
    help: "Port of /live, /ready and /metrics, which need no credential, and of the operator's page.",
  }),
  migrations: choice({
    env: "PALISADE_MIGRATIONS",
    choices: ["on", "off"],
    fallback: "on",
    help: "Whether to bring the schema up to date at start; off where the role may not (then run npx @palisade/gateway migrate).",
  }),
  durability: choice({
    env: "PALISADE_DURABILITY",
    choices: ["local", "sync"],
    fallback: "local",
    help: "sync answers only after a synchronous standby has the write, so that a failover cannot forget a fence.",
  }),
  history: choice({
    env: "PALISADE_HISTORY",
    choices: ["off", "on"],
    fallback: "off",
    help: "Whether every accepted write is kept for GET /v1/history.",
  }),
  historyRetentionMs: number({
    env: "PALISADE_HISTORY_RETENTION_MS",
    range: [60_000, 36_500 * DAY_MS],
    fallback: presetLimits.historyRetentionMs,
    help: "How long an entry of the history is kept; ten years when absent.",
  }),
  redisUrls,
  namespace: text({
    env: "PALISADE_NAMESPACE",
    is: z.string().regex(/^[A-Za-z0-9._:/@-]{1,128}$/),
    mustBe: "1 to 128 letters, digits or any of . _ : / @ -",
    help: "The namespace of the lock; its own default when absent.",
  }),
  verify: choice({
    env: "PALISADE_VERIFY",
    choices: ["off", "open", "closed"],
    help: "What happens to a raise while the lock cannot be asked: closed refuses it, open lets it through, off never asks. Closed when PALISADE_REDIS_URLS is set, else off.",
  }),
  restoreCheck: choice({
    env: "PALISADE_RESTORE_CHECK",
    choices: ["on", "off"],
    fallback: "on",
    help: "Whether a database that was restored from a backup is refused until npx @palisade/gateway recover has run; needs PALISADE_REDIS_URLS.",
  }),
  apiKeysFile: text({
    env: "PALISADE_API_KEYS_FILE",
    mustBe: "the path of a JSON file",
    help: "API keys, hashed, with their scopes; npx @palisade/gateway keygen makes entries.",
  }),
  apiKeys,
  jwtSecret: text({
    env: "PALISADE_JWT_SECRET",
    is: z.string().min(32),
    mustBe: "at least 32 characters",
    help: "Shared secret for JWTs, which are then signed by HS256, HS384 or HS512.",
    secret: true,
  }),
  jwtJwksUrl: text({
    env: "PALISADE_JWT_JWKS_URL",
    is: urlOf("http:", "https:"),
    mustBe: "an http:// or https:// URL",
    help: "Where the public keys for JWTs are fetched; one that was withdrawn stops counting within five minutes.",
  }),
  jwtAudience: text({
    env: "PALISADE_JWT_AUDIENCE",
    help: "The aud claim a JWT must carry; needed with either of the two above.",
  }),
  jwtIssuer: text({ env: "PALISADE_JWT_ISSUER", help: "The iss claim a JWT must carry, where set." }),
  rateLimitPerSecond: number({
    env: "PALISADE_RATE_LIMIT_PER_SECOND",
    range: [0, 1_000_000],
    fallback: 0,
    help: "Requests per second and credential; 0 is no limit.",
  }),
  bodyLimitBytes: number({
    env: "PALISADE_BODY_LIMIT_BYTES",
    range: [1, 64 * 1024 * 1024],
    fallback: 1024 * 1024,
    help: "Largest body of a request.",
  }),
  idleTimeoutMs: number({
    env: "PALISADE_IDLE_TIMEOUT_MS",
    range: [10, 3_600_000],
    fallback: 72_000,
    help: "How long a connection may be idle; longer than that of a load balancer in front.",
  }),
  unreadyMs: number({
    env: "PALISADE_UNREADY_MS",
    range: [0, 600_000],
    fallback: 0,
    help: "How long after SIGTERM the gateway only says on /ready that it stops, until a load balancer in front has noticed.",
  }),
  drainMs: number({
    env: "PALISADE_DRAIN_MS",
    range: [0, 600_000],
    fallback: 10_000,
    help: "How long accepted requests may take to finish after that. In the first tenth open connections may send one more, which is answered with Connection: close.",
  }),
  poolSize: number({
    env: "PALISADE_POOL_SIZE",
    range: [1, 1_000],
    fallback: presetLimits.poolSize,
    help: "Connections to Postgres that read; those that write are few and counted by themselves.",
  }),
  writeTimeoutMs: number({
    env: "PALISADE_WRITE_TIMEOUT_MS",
    range: [10, 600_000],
    fallback: presetLimits.writeTimeoutMs,
    help: "How long Postgres may take to answer a write; then the answer is 504. Every other wait for Postgres is a share of it.",
  }),
  page: choice({
    env: "PALISADE_PAGE",
    choices: ["off", "on"],
    fallback: "off",
    help: "Whether the admin port serves the operator's page at /page, which needs a credential with an observe scope.",
  }),
  logLevel: choice({
    env: "PALISADE_LOG_LEVEL",
    choices: ["fatal", "error", "warn", "info", "debug", "trace", "silent"],
    fallback: "info",
    help: "info logs refusals and failures; debug logs every request.",
  }),
};

/** Every setting with its value. A setting without a default that was not given is undefined. */
export type Settings = { readonly [Name in keyof typeof settings]: (typeof settings)[Name] extends Setting<infer Value> ? Value : never };

/** What createGateway takes: only `databaseUrl` must be there. */
export type GatewayConfig = { readonly [K in keyof Settings]?: Settings[K] | undefined } & { readonly databaseUrl: string };

/** The configuration cannot work. Each problem is one sentence that names the setting. */
export class GatewayConfigError extends Error {
  override readonly name = "GatewayConfigError";
  /** Tells it from other errors. */
  readonly code = "GATEWAY_CONFIG_INVALID";
  /** One sentence per setting that is wrong. */
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

const table: readonly (readonly [string, Setting])[] = Object.entries(settings);

/**
 * The name of a setting where the reader of the message can change it: DATABASE_URL or databaseUrl.
 */
export type Naming = (setting: keyof Settings) => string;

/** Throws GatewayConfigError with every problem at once. */
export function resolveSettings(config: Readonly<Record<string, unknown>> | undefined, naming: Naming): Settings {
  if (typeof config !== "object" || config === null)
    throw new GatewayConfigError(["createGateway needs an object of settings, with databaseUrl."]);
  const problems: string[] = [];
  const resolved: Record<string, unknown> = {};
  for (const key of Object.keys(config)) {
    const meant = key in settings ? undefined : nearest(key, Object.keys(settings));
    if (!(key in settings))
      problems.push(`${key} is not a setting of the gateway${meant === undefined ? "." : `; did you mean ${meant}?`}`);
  }
  for (const [key, setting] of table) {
    const given = config[key];
    const value = given === undefined ? setting.fallback : given;
    if (given !== undefined && !setting.schema.safeParse(given).success)
      problems.push(`${naming(key as keyof Settings)} ${setting.fault?.(given) ?? `must be ${setting.mustBe}${shown(setting, given)}`}.`);
    resolved[key] = value;
  }
  if (config.databaseUrl === undefined) problems.push(`${naming("databaseUrl")} is missing: it must be ${settings.databaseUrl.mustBe}.`);
  const complete = resolved as unknown as Settings;
  if (problems.length === 0) problems.push(...contradictions(complete, naming));
  if (problems.length > 0) throw new GatewayConfigError(problems);
  return complete;
}

// Some values contain passwords or keys; those are never shown.
function shown(setting: Setting, given: unknown): string {
  if (setting.secret === true || !(typeof given === "string" || typeof given === "number")) return "";
  return `, not ${JSON.stringify(given)}`;
}

export function hasJwt(settings: Settings): boolean {
  return settings.jwtSecret !== undefined || settings.jwtJwksUrl !== undefined;
}

/** Default: closed where there is a lock to ask, otherwise off. */
export function verifyMode(settings: Settings): "off" | "open" | "closed" {
  return settings.verify ?? (settings.redisUrls === undefined ? "off" : "closed");
}

function contradictions(settings: Settings, naming: Naming): string[] {
  const problems: string[] = [];
  const refuse = (sentence: string): void => void problems.push(sentence);
  if (settings.apiKeys === "none" && !isLoopback(settings.host))
    refuse(
      `${naming("host")} is ${settings.host}, but with ${naming("apiKeys")} none the gateway serves only loopback addresses such as 127.0.0.1.`,
    );
  if (settings.apiKeys === "none" && hasJwt(settings))
    refuse(`${naming("apiKeys")} is none, and ${naming(settings.jwtSecret === undefined ? "jwtJwksUrl" : "jwtSecret")} is set.`);
  if (settings.apiKeysFile !== undefined && settings.apiKeys !== undefined)
    refuse(`${naming("apiKeysFile")} and ${naming("apiKeys")} cannot both be set.`);
  if (settings.verify !== undefined && settings.verify !== "off" && settings.redisUrls === undefined) {
    refuse(`${naming("verify")} is ${settings.verify}, which needs ${naming("redisUrls")}.`);
  }
  const twice = repeated((settings.redisUrls ?? []).flatMap((url) => addressOf(url)));
  if (twice !== undefined)
    refuse(`${naming("redisUrls")} names ${twice} twice: each node is a Redis master of its own, and one server must not vote twice.`);
  if (settings.port !== 0 && settings.port === settings.adminPort)
    refuse(`${naming("port")} and ${naming("adminPort")} are both ${settings.port}.`);
  problems.push(...jwtContradictions(settings, naming));
  return problems;
}

/** Host and port, which may be shown; user and password may not. */
function addressOf(url: string): readonly string[] {
  if (!URL.canParse(url)) return [];
  const { hostname, port } = new URL(url);
  return [`${hostname.toLowerCase()}:${port === "" ? "6379" : port}`];
}

function repeated(values: readonly string[]): string | undefined {
  return values.find((value, index) => values.indexOf(value) !== index);
}

function jwtContradictions(settings: Settings, naming: Naming): string[] {
  const { jwtSecret, jwtJwksUrl, jwtAudience, jwtIssuer } = settings;
  if (!hasJwt(settings)) {
    const orphans = [
      jwtAudience === undefined ? undefined : naming("jwtAudience"),
      jwtIssuer === undefined ? undefined : naming("jwtIssuer"),
    ].filter((name) => name !== undefined);
    return orphans.map((name) => `${name} needs ${naming("jwtSecret")} or ${naming("jwtJwksUrl")}.`);
  }
  const problems: string[] = [];
  if (jwtSecret !== undefined && jwtJwksUrl !== undefined)
    problems.push(`${naming("jwtSecret")} and ${naming("jwtJwksUrl")} cannot both be set.`);
  if (jwtAudience === undefined)
    problems.push(`${naming("jwtAudience")} is missing: without it a token made for another service would pass here.`);
  return problems;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

// Environment variables to settings. An empty variable counts as absent. A misspelled PALISADE_
// name is refused, because the intended setting would silently keep its default.

export interface EnvironmentSettings {
  readonly settings: Settings;
  /** Names that begin with PALISADE_ and mean nothing here. */
  readonly unknownNames: readonly string[];
}

export function readEnvironment(env: Readonly<Record<string, string | undefined>>): EnvironmentSettings {
  const config: Record<string, unknown> = {};
  for (const [key, setting] of table) {
    const text = env[setting.env]?.trim();
    if (text !== undefined && text !== "") config[key] = setting.read === undefined ? text : setting.read(text);
  }
  const unknownNames = Object.keys(env).filter((name) => name.startsWith("PALISADE_") && !knownNames.has(name));
  const misspelled = unknownNames.flatMap((name) => {
    const bare = name.slice("PALISADE_".length);
    // Kubernetes tells of a service that is called palisade by PALISADE_PORT=tcp://….
    const isService = /^tcp:\/\//.test(env[name] ?? "");
    const meant = nearest(name, knownNames) ?? (knownNames.has(bare) && !isService ? bare : undefined);
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${meant}?`];
  });
  if (misspelled.length > 0) throw new GatewayConfigError(misspelled);
  return { settings: resolveSettings(config, (key) => settings[key].env), unknownNames };
}

const knownNames = new Set(table.map(([, { env }]) => env));

/** The name that was meant, where one of these is misspelt. */
function nearest(name: string, known: Iterable<string>): string | undefined {
  return [...known].find((other) => distance(name, other) <= Math.min(2, name.length / 2));
}

/** Edit distance: how many letters must be inserted, deleted or changed. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const changed = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

// The table of settings: name, environment variable, rule, default, meaning. createGateway and its
// types, the environment, --help and docs/settings.md are all read from it. What no operator has a
// reason to move is a constant where it is used.
import { z } from "zod";
import type { ApiKeyFile } from "../http/api-keys.js";
import { apiKeyFile } from "../http/auth.js";
import { presetLimits } from "../limits.js";
import { databaseUrlFault } from "../store/database-url.js";

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
  read: (list) =>
    list
      .split(",")
      .map((url) => url.trim())
      .filter((url) => url !== ""),
  secret: true,
};

const apiKeys: Setting<ApiKeyFile["keys"] | undefined> = {
  env: "PALISADE_API_KEYS",
  help: "The same entries as JSON text, in place of a file.",
  schema: apiKeyFile.shape.keys,
  mustBe: 'a JSON array of keys such as [{"id":"worker","sha256":"…","scopes":["write:orders/"]}]',
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
    help: "Where to listen. Without credentials only loopback is allowed.",
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
    help: "Whether to bring the schema up to date at start; off where the role may not (then run palisade-gateway migrate).",
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
    help: "Whether a database that was restored from a backup is refused until palisade-gateway recover has run; needs PALISADE_REDIS_URLS.",
  }),
  apiKeysFile: text({
    env: "PALISADE_API_KEYS_FILE",
    mustBe: "the path of a JSON file",
    help: "API keys, hashed, with their scopes; palisade-gateway keygen makes entries.",
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

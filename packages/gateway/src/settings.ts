// The table of settings: name, environment variable, rule, default, meaning. Everything that shows or reads settings goes through it, so they cannot disagree.
import { z } from "zod";
import type { Settings } from "./config.js";
import { apiKeyFile } from "./http/api-keys.js";

export interface Setting {
  readonly env: string;
  readonly schema: z.ZodType;
  readonly fallback: unknown;
  /** Completes the sentence "NAME must be …". */
  readonly mustBe: string;
  readonly help: string;
  /** Its value may hold a password or key and is never shown. */
  readonly secret: boolean;
  /** How the text of an environment variable becomes a value for the schema. */
  readonly read: (text: string) => unknown;
}

const asText = (text: string): unknown => text;

function text(env: string, schema: z.ZodType, mustBe: string, help: string): Setting {
  return { env, schema, fallback: undefined, mustBe, help, secret: false, read: asText };
}

function number(env: string, range: readonly [number, number], fallback: number | undefined, help: string): Setting {
  const [least, most] = range;
  return {
    env,
    schema: z.int().min(least).max(most),
    fallback,
    mustBe: `a whole number from ${least} to ${most}`,
    help,
    secret: false,
    read: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
  };
}

function choice(env: string, choices: readonly string[], fallback: string | undefined, help: string): Setting {
  const mustBe = `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
  return { env, schema: z.enum(choices), fallback, mustBe, help, secret: false, read: asText };
}

function list(env: string, item: z.ZodType, mustBe: string, help: string): Setting {
  const read = (text: string): unknown =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
  return { env, schema: z.array(item).min(1), fallback: undefined, mustBe, help, secret: false, read };
}

function secret(setting: Setting): Setting {
  return { ...setting, secret: true };
}

function urlOf(...protocols: string[]): z.ZodType {
  return z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const name = z.string().min(1).max(255);
const sharedAlgorithms = ["HS256", "HS384", "HS512"];
const publicKeyAlgorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"];
const levels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];
const aDay = 24 * 60 * 60 * 1_000;

export const settings: { readonly [K in keyof Settings]: Setting } = {
  databaseUrl: secret(
    text("DATABASE_URL", urlOf("postgres:", "postgresql:"), "a postgres:// URL", "The Postgres that holds the resources."),
  ),
  host: {
    ...text("HOST", name, "an address or host name", "Where to listen. Without credentials only loopback is allowed."),
    fallback: "127.0.0.1",
  },
  port: number("PORT", [0, 65_535], 8_080, "Port of the API; 0 takes any free one."),
  adminHost: text("ADMIN_HOST", name, "an address or host name", "Where to listen for probes and metrics; the same as HOST when absent."),
  adminPort: number("ADMIN_PORT", [0, 65_535], 8_081, "Port of /live, /ready and /metrics, which need no credential."),
  migrations: choice(
    "PALISADE_MIGRATIONS",
    ["on", "off"],
    "on",
    "Whether to bring the schema up to date at start; off where the role may not (then run palisade-gateway migrate).",
  ),
  durability: choice(
    "PALISADE_DURABILITY",
    ["local", "sync"],
    "local",
    "sync answers only after a synchronous standby has the write, so that a failover cannot forget a fence.",
  ),
  history: choice("PALISADE_HISTORY", ["off", "on"], "off", "Whether every accepted write is kept for GET /v1/history."),
  redisUrls: secret(
    list(
      "PALISADE_REDIS_URLS",
      urlOf("redis:", "rediss:"),
      "a comma-separated list of redis:// URLs",
      "The nodes of the lock. With them, a token that would raise a fence is first checked to have been issued.",
    ),
  ),
  namespace: text("PALISADE_NAMESPACE", name, "1 to 255 characters", "The namespace of the lock; its own default when absent."),
  verify: choice(
    "PALISADE_VERIFY",
    ["off", "open", "closed"],
    undefined,
    "What becomes of a raise while the lock cannot be asked: closed refuses it, open lets it through, off never asks. Closed when PALISADE_REDIS_URLS is set, else off.",
  ),
  apiKeysFile: text(
    "PALISADE_API_KEYS_FILE",
    name,
    "the path of a JSON file",
    "API keys, hashed, with their scopes; palisade-gateway keygen makes entries.",
  ),
  apiKeys: secret({
    ...text(
      "PALISADE_API_KEYS",
      apiKeyFile.shape.keys,
      'a JSON array of keys such as [{"id":"worker","sha256":"…","scopes":["write:orders/"]}]',
      "The same entries as JSON text, in place of a file.",
    ),
    read: parseJson,
  }),
  jwtSecret: secret(text("PALISADE_JWT_SECRET", z.string().min(32), "at least 32 characters", "Shared secret for JWTs.")),
  jwtJwksUrl: text(
    "PALISADE_JWT_JWKS_URL",
    urlOf("http:", "https:"),
    "an http:// or https:// URL",
    "Where the public keys for JWTs are fetched.",
  ),
  jwtAudience: text(
    "PALISADE_JWT_AUDIENCE",
    name,
    "1 to 255 characters",
    "The aud claim a JWT must carry; needed with either of the two above.",
  ),
  jwtIssuer: text("PALISADE_JWT_ISSUER", name, "1 to 255 characters", "The iss claim a JWT must carry, where set."),
  jwtAlgorithms: list(
    "PALISADE_JWT_ALGORITHMS",
    z.enum([...sharedAlgorithms, ...publicKeyAlgorithms]),
    `a comma-separated list out of ${[...sharedAlgorithms, ...publicKeyAlgorithms].join(", ")}`,
    "Allowed algorithms; HS256 with a secret and RS256, ES256, EdDSA with public keys when absent.",
  ),
  rateLimitPerSecond: number("PALISADE_RATE_LIMIT_PER_SECOND", [0, 1_000_000], 0, "Requests per second and credential; 0 is no limit."),
  bodyLimitBytes: number("PALISADE_BODY_LIMIT_BYTES", [1, 64 * 1024 * 1024], 1024 * 1024, "Largest body of a request."),
  bodyBudgetBytes: number(
    "PALISADE_BODY_BUDGET_BYTES",
    [1, 4 * 1024 * 1024 * 1024],
    128 * 1024 * 1024,
    "Largest sum of bodies held at a time; beyond it the answer is 503.",
  ),
  maxConnections: number("PALISADE_MAX_CONNECTIONS", [1, 1_000_000], 10_000, "Open connections; further ones are closed at once."),
  maxRequests: number("PALISADE_MAX_REQUESTS", [1, 1_000_000], 10_000, "Requests being answered at a time; beyond it the answer is 503."),
  headersTimeoutMs: number("PALISADE_HEADERS_TIMEOUT_MS", [10, 600_000], 10_000, "How long the header of a request may take to arrive."),
  requestTimeoutMs: number("PALISADE_REQUEST_TIMEOUT_MS", [10, 600_000], 30_000, "How long a whole request may take to arrive."),
  idleTimeoutMs: number(
    "PALISADE_IDLE_TIMEOUT_MS",
    [10, 3_600_000],
    72_000,
    "How long a connection may be silent; longer than that of a load balancer in front.",
  ),
  drainMs: number("PALISADE_DRAIN_MS", [0, 600_000], 10_000, "How long accepted requests may take to finish after SIGTERM."),
  poolSize: number("PALISADE_POOL_SIZE", [1, 1_000], undefined, "Connections to Postgres for reads and transactions."),
  statementsInFlight: number(
    "PALISADE_STATEMENTS_IN_FLIGHT",
    [1, 100],
    undefined,
    "Statements for single writes under way at a time, each on its own connection.",
  ),
  maxBatchRows: number("PALISADE_MAX_BATCH_ROWS", [1, 10_000], undefined, "Writes gathered into one statement."),
  maxQueuedWrites: number(
    "PALISADE_MAX_QUEUED_WRITES",
    [1, 1_000_000],
    undefined,
    "Writes waiting for a statement; beyond it the answer is 503.",
  ),
  writeTimeoutMs: number(
    "PALISADE_WRITE_TIMEOUT_MS",
    [10, 600_000],
    undefined,
    "How long Postgres may take to answer a write; then the answer is 504.",
  ),
  readTimeoutMs: number(
    "PALISADE_READ_TIMEOUT_MS",
    [10, 600_000],
    undefined,
    "How long Postgres may take to answer a read; then the answer is 503.",
  ),
  lockWaitMs: number(
    "PALISADE_LOCK_WAIT_MS",
    [1, 600_000],
    undefined,
    "How long a write waits for a row that another transaction holds; then the answer is 409.",
  ),
  idempotencyRetentionMs: number(
    "PALISADE_IDEMPOTENCY_RETENTION_MS",
    [1_000, 30 * aDay],
    undefined,
    "How long a used Idempotency-Key is remembered.",
  ),
  logLevel: choice("PALISADE_LOG_LEVEL", levels, "info", "info logs refusals and failures; debug logs every request."),
};

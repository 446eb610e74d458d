// The table of settings: name, environment variable, rule, default, meaning. createGateway, the
// environment, --help and the README are all read from it.
import { z } from "zod";
import { storeRange } from "../store/store-limits.js";
import { credentialSettings } from "./credential-settings.js";
import type { Setting } from "./setting.js";
import { aDatabase, choice, list, nodeUrl, number, secret, shortText } from "./setting-kinds.js";
import type { Settings } from "./setting-values.js";

const levels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

export const settings: { readonly [K in keyof Settings]: Setting } = {
  databaseUrl: secret({
    env: "DATABASE_URL",
    ...aDatabase,
    help: "The Postgres that holds the resources. With several hosts (postgres://a,b/app) the one that can be written to is used.",
  }),
  host: {
    env: "HOST",
    schema: shortText,
    mustBe: "an address or host name",
    help: "Where to listen. Without credentials only loopback is allowed.",
    fallback: "127.0.0.1",
  },
  port: number({ env: "PORT", range: [0, 65_535], fallback: 8_080, help: "Port of the API; 0 takes any free one." }),
  adminHost: {
    env: "ADMIN_HOST",
    schema: shortText,
    mustBe: "an address or host name",
    help: "Where to listen for probes and metrics; the same as HOST when absent.",
  },
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
  redisUrls: secret(
    list({
      env: "PALISADE_REDIS_URLS",
      item: nodeUrl,
      mustBe: "a comma-separated list of redis:// URLs; of several fleets, each with the name of its own before it: west=redis://…",
      help: "The nodes of the lock. With them, a token that would raise a fence is first checked to have been issued.",
    }),
  ),
  namespace: {
    env: "PALISADE_NAMESPACE",
    schema: z.string().regex(/^[A-Za-z0-9._:/@-]{1,128}$/),
    mustBe: "1 to 128 letters, digits or any of . _ : / @ -",
    help: "The namespace of the lock; its own default when absent.",
  },
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
  ...credentialSettings,
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
  bodyBudgetBytes: number({
    env: "PALISADE_BODY_BUDGET_BYTES",
    range: [1, 4 * 1024 * 1024 * 1024],
    fallback: 128 * 1024 * 1024,
    help: "Largest sum of bodies held at a time; beyond it the answer is 503.",
  }),
  maxConnections: number({
    env: "PALISADE_MAX_CONNECTIONS",
    range: [1, 1_000_000],
    fallback: 10_000,
    help: "Open connections; further ones are closed at once.",
  }),
  maxRequests: number({
    env: "PALISADE_MAX_REQUESTS",
    range: [1, 1_000_000],
    fallback: 10_000,
    help: "Requests being answered at a time; beyond it the answer is 503.",
  }),
  headersTimeoutMs: number({
    env: "PALISADE_HEADERS_TIMEOUT_MS",
    range: [10, 600_000],
    fallback: 10_000,
    help: "How long the header of a request may take to arrive.",
  }),
  requestTimeoutMs: number({
    env: "PALISADE_REQUEST_TIMEOUT_MS",
    range: [10, 600_000],
    fallback: 30_000,
    help: "How long a whole request may take to arrive.",
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
  lastRequestMs: number({
    env: "PALISADE_LAST_REQUEST_MS",
    range: [0, 600_000],
    fallback: 1_000,
    help: "How long open connections may then send one more request, which is answered with Connection: close.",
  }),
  drainMs: number({
    env: "PALISADE_DRAIN_MS",
    range: [0, 600_000],
    fallback: 10_000,
    help: "How long accepted requests may take to finish after that.",
  }),
  poolSize: number({ env: "PALISADE_POOL_SIZE", ...storeRange("poolSize"), help: "Connections to Postgres that read." }),
  statementsInFlight: number({
    env: "PALISADE_STATEMENTS_IN_FLIGHT",
    ...storeRange("statementsInFlight"),
    help: "Connections to Postgres that write, as many again for transactions, and as many again for rows that others hold.",
  }),
  maxBatchRows: number({
    env: "PALISADE_MAX_BATCH_ROWS",
    ...storeRange("maxBatchRows"),
    help: "Writes gathered into one statement.",
  }),
  maxQueuedWrites: number({
    env: "PALISADE_MAX_QUEUED_WRITES",
    ...storeRange("maxQueuedWrites"),
    help: "Writes waiting for a statement; beyond it the answer is 503.",
  }),
  writeTimeoutMs: number({
    env: "PALISADE_WRITE_TIMEOUT_MS",
    ...storeRange("writeTimeoutMs"),
    help: "How long Postgres may take to answer a write; then the answer is 504.",
  }),
  readTimeoutMs: number({
    env: "PALISADE_READ_TIMEOUT_MS",
    ...storeRange("readTimeoutMs"),
    help: "How long Postgres may take to answer a read; then the answer is 503.",
  }),
  lockWaitMs: number({
    env: "PALISADE_LOCK_WAIT_MS",
    ...storeRange("lockWaitMs"),
    help: "How long a write waits for a row that another transaction holds; then the answer is 409. Below four fifths of the write timeout.",
  }),
  batchLockWaitMs: number({
    env: "PALISADE_BATCH_LOCK_WAIT_MS",
    ...storeRange("batchLockWaitMs"),
    help: "How long of that a batch or a transaction waits before its held rows go by themselves, on connections for such rows.",
  }),
  idempotencyRetentionMs: number({
    env: "PALISADE_IDEMPOTENCY_RETENTION_MS",
    ...storeRange("idempotencyRetentionMs"),
    help: "How long a used Idempotency-Key is remembered.",
  }),
  historyRetentionMs: number({
    env: "PALISADE_HISTORY_RETENTION_MS",
    ...storeRange("historyRetentionMs"),
    help: "How long an entry of the history is kept; ten years when absent.",
  }),
  maxChangeReaders: number({
    env: "PALISADE_MAX_CHANGE_READERS",
    range: [1, 100_000],
    fallback: 100,
    help: "How many may read GET /v1/changes at a time; beyond it the answer is 503.",
  }),
  refusedLog: choice({
    env: "PALISADE_REFUSED_LOG",
    choices: ["off", "on"],
    fallback: "off",
    help: "Whether refused writes are kept for GET /v1/refused.",
  }),
  refusedRetentionMs: number({
    env: "PALISADE_REFUSED_RETENTION_MS",
    ...storeRange("refusedRetentionMs"),
    help: "How long a refused write is kept.",
  }),
  refusedRows: number({
    env: "PALISADE_REFUSED_ROWS",
    ...storeRange("refusedRows"),
    help: "How many refused writes are kept; the oldest go first.",
  }),
  page: choice({
    env: "PALISADE_PAGE",
    choices: ["off", "on"],
    fallback: "off",
    help: "Whether the admin port serves the operator's page at /page, which needs a credential with an observe scope.",
  }),
  documentLimitBytes: number({
    env: "PALISADE_DOCUMENT_LIMIT_BYTES",
    ...storeRange("documentLimitBytes"),
    help: "Largest stored document, also after a patch; beyond it the answer is 413.",
  }),
  connectTimeoutMs: number({
    env: "PALISADE_CONNECT_TIMEOUT_MS",
    ...storeRange("connectTimeoutMs"),
    help: "How long opening a connection to Postgres may take, and how long a read waits for one or for the reads under way.",
  }),
  maxWaitMs: number({
    env: "PALISADE_MAX_WAIT_MS",
    ...storeRange("maxWaitMs"),
    help: "How long a write may wait for a statement in all before it is refused as not applied.",
  }),
  maxQueuedBytes: number({
    env: "PALISADE_MAX_QUEUED_BYTES",
    ...storeRange("maxQueuedBytes"),
    help: "Bytes of writes waiting for a statement; beyond it the answer is 503.",
  }),
  callFunctions: list({
    env: "PALISADE_CALL_FUNCTIONS",
    item: z.string().regex(/^[a-z_][a-z0-9_]{0,62}\.[a-z_][a-z0-9_]{0,62}$/),
    mustBe: "a comma-separated list of functions, each as schema.name",
    help: "The functions that POST /v1/call may call; none when absent.",
  }),
  callDatabaseUrl: secret({
    env: "PALISADE_CALL_DATABASE_URL",
    ...aDatabase,
    help: "The same database under the role that these functions run as: palisade_app, and EXECUTE on them.",
  }),
  logLevel: choice({
    env: "PALISADE_LOG_LEVEL",
    choices: levels,
    fallback: "info",
    help: "info logs refusals and failures; debug logs every request.",
  }),
};

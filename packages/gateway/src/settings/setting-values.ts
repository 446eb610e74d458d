// What the settings are once they are read. Each comment is the `help` of its setting, so that
// editors show what --help prints; a test compares them.
import type { ApiKeyFile } from "../http/api-keys.js";

/** Who may call. */
export interface CredentialSettings {
  /** API keys, hashed, with their scopes; palisade-gateway keygen makes entries. */
  readonly apiKeysFile: string | undefined;
  /** The same entries as JSON text, in place of a file. */
  readonly apiKeys: ApiKeyFile["keys"] | undefined;
  /** Shared secret for JWTs. */
  readonly jwtSecret: string | undefined;
  /** Where the public keys for JWTs are fetched. */
  readonly jwtJwksUrl: string | undefined;
  /**
   * A public key that was withdrawn stops counting after at most this time; the keys are fetched
   * again before.
   */
  readonly jwtJwksMaxAgeMs: number | undefined;
  /** The aud claim a JWT must carry; needed with either of the two above. */
  readonly jwtAudience: string | undefined;
  /** The iss claim a JWT must carry, where set. */
  readonly jwtIssuer: string | undefined;
  /**
   * Allowed algorithms; HS256 with a secret and RS256, ES256, EdDSA with public keys when absent.
   */
  readonly jwtAlgorithms: readonly string[] | undefined;
}

/** Every setting with its value. A setting without a default that was not given is undefined. */
export interface Settings extends CredentialSettings {
  /**
   * The Postgres that holds the resources. With several hosts (postgres://a,b/app) the one that can
   * be written to is used.
   */
  readonly databaseUrl: string;
  /** Where to listen. Without credentials only loopback is allowed. */
  readonly host: string;
  /** Port of the API; 0 takes any free one. */
  readonly port: number;
  /** Where to listen for probes and metrics; the same as HOST when absent. */
  readonly adminHost: string | undefined;
  /**
   * Port of /live, /ready and /metrics, which need no credential, and of the operator's page.
   */
  readonly adminPort: number;
  /**
   * Whether to bring the schema up to date at start; off where the role may not (then run
   * palisade-gateway migrate).
   */
  readonly migrations: "on" | "off";
  /**
   * sync answers only after a synchronous standby has the write, so that a failover cannot forget a
   * fence.
   */
  readonly durability: "local" | "sync";
  /** Whether every accepted write is kept for GET /v1/history. */
  readonly history: "off" | "on";
  /**
   * The nodes of the lock. With them, a token that would raise a fence is first checked to have
   * been issued.
   */
  readonly redisUrls: readonly string[] | undefined;
  /** The namespace of the lock; its own default when absent. */
  readonly namespace: string | undefined;
  /**
   * What happens to a raise while the lock cannot be asked: closed refuses it, open lets it
   * through, off never asks. Closed when PALISADE_REDIS_URLS is set, else off.
   */
  readonly verify: "off" | "open" | "closed" | undefined;
  /**
   * Whether a database that was restored from a backup is refused until palisade-gateway recover
   * has run; needs PALISADE_REDIS_URLS.
   */
  readonly restoreCheck: "on" | "off";
  /** Requests per second and credential; 0 is no limit. */
  readonly rateLimitPerSecond: number;
  /** Largest body of a request. */
  readonly bodyLimitBytes: number;
  /** Largest sum of bodies held at a time; beyond it the answer is 503. */
  readonly bodyBudgetBytes: number;
  /** Open connections; further ones are closed at once. */
  readonly maxConnections: number;
  /** Requests being answered at a time; beyond it the answer is 503. */
  readonly maxRequests: number;
  /** How long the header of a request may take to arrive. */
  readonly headersTimeoutMs: number;
  /** How long a whole request may take to arrive. */
  readonly requestTimeoutMs: number;
  /** How long a connection may be idle; longer than that of a load balancer in front. */
  readonly idleTimeoutMs: number;
  /**
   * How long after SIGTERM the gateway only says on /ready that it stops, until a load balancer in
   * front has noticed.
   */
  readonly unreadyMs: number;
  /**
   * How long open connections may then send one more request, which is answered with Connection:
   * close.
   */
  readonly lastRequestMs: number;
  /** How long accepted requests may take to finish after that. */
  readonly drainMs: number;
  /** Connections to Postgres that read. */
  readonly poolSize: number | undefined;
  /**
   * Connections to Postgres that write, as many again for transactions, and as many again for rows
   * that others hold.
   */
  readonly statementsInFlight: number | undefined;
  /** Writes gathered into one statement. */
  readonly maxBatchRows: number | undefined;
  /** Writes waiting for a statement; beyond it the answer is 503. */
  readonly maxQueuedWrites: number | undefined;
  /** How long Postgres may take to answer a write; then the answer is 504. */
  readonly writeTimeoutMs: number | undefined;
  /** How long Postgres may take to answer a read; then the answer is 503. */
  readonly readTimeoutMs: number | undefined;
  /**
   * How long a write waits for a row that another transaction holds; then the answer is 409. Below
   * four fifths of the write timeout.
   */
  readonly lockWaitMs: number | undefined;
  /**
   * How long of that a batch or a transaction waits before its held rows go by themselves, on
   * connections for such rows.
   */
  readonly batchLockWaitMs: number | undefined;
  /**
   * How long opening a connection to Postgres may take, and how long a read waits for one or for
   * the reads under way.
   */
  readonly connectTimeoutMs: number | undefined;
  /** How long a write may wait for a statement in all before it is refused as not applied. */
  readonly maxWaitMs: number | undefined;
  /** Bytes of writes waiting for a statement; beyond it the answer is 503. */
  readonly maxQueuedBytes: number | undefined;
  /** The functions that POST /v1/call may call; none when absent. */
  readonly callFunctions: readonly string[] | undefined;
  /**
   * The same database under the role that these functions run as: palisade_app, and EXECUTE on
   * them.
   */
  readonly callDatabaseUrl: string | undefined;
  /** How long a used Idempotency-Key is remembered. */
  readonly idempotencyRetentionMs: number | undefined;
  /** How long an entry of the history is kept; ten years when absent. */
  readonly historyRetentionMs: number | undefined;
  /** How many may read GET /v1/changes at a time; beyond it the answer is 503. */
  readonly maxChangeReaders: number;
  /** Whether refused writes are kept for GET /v1/refused. */
  readonly refusedLog: "off" | "on";
  /** How long a refused write is kept. */
  readonly refusedRetentionMs: number | undefined;
  /** How many refused writes are kept; the oldest go first. */
  readonly refusedRows: number | undefined;
  /**
   * Whether the admin port serves the operator's page at /page, which needs a credential with an
   * observe scope.
   */
  readonly page: "off" | "on";
  /** Largest stored document, also after a patch; beyond it the answer is 413. */
  readonly documentLimitBytes: number | undefined;
  /** info logs refusals and failures; debug logs every request. */
  readonly logLevel: "fatal" | "error" | "warn" | "info" | "debug" | "trace" | "silent";
}

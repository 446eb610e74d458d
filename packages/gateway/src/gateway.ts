// One gateway from start to stop: puts the parts together, waits for its database and brings that up
// to date, opens the two ports, and closes everything in the order that loses no accepted request.
import type { RequestListener, Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { MigrationError, migrate } from "@palisade/guard/schema";
import type { Locker } from "@palisade/lock";
import { lockMetrics } from "@palisade/lock/metrics";
import type { OperatorPage } from "@palisade/page";
import type { Express } from "express";
import { type FencedStore, openStore, type Readiness, type ReadinessCheck, type VerifyToken } from "./fenced-store.js";
import { createAdminApp, MAX_ADMIN_CONNECTIONS, mountPage } from "./http/admin.js";
import { Bodies } from "./http/body.js";
import { Dispatcher, MAX_REQUESTS, RateLimit, RefusalRing, type Serving } from "./http/dispatcher.js";
import { openApiText } from "./http/openapi.js";
import { createApp } from "./http/routes.js";
import { Sending } from "./http/sending.js";
import { closeServer, createGatewayServer, type GatewayServer, listenOn, urlOf } from "./http/server.js";
import { presetLimits, type ServerLimits, type StoreLimits, serverLimits, storeLimits } from "./limits.js";
import { createLog, type Log } from "./observe/log.js";
import { Metrics } from "./observe/metrics.js";
import { Credentials } from "./settings/credentials.js";
import { type GatewayConfig, type Naming, resolveSettings, type Settings, verifyMode } from "./settings/settings.js";
import { demandFitDatabase } from "./store/distribute.js";
import { EngineError } from "./store/engine.js";

/** One gateway of this process, not yet listening. */
export interface Gateway {
  /**
   * The API as an Express application, to mount in another one: then call open() in place of
   * listen(). What is none of its routes goes on there.
   */
  readonly app: RequestListener;
  /** The probes, the metrics and the operator's page, in the same way. They ask for no credential. */
  readonly adminApp: RequestListener;
  /** Migrates and opens the store, without a port. */
  open(): Promise<void>;
  /** open(), then both ports. */
  listen(): Promise<void>;
  /** Where the API listens, after `listen`. */
  readonly url: string;
  /** Where the probes, the metrics and the page listen, after `listen`. */
  readonly adminUrl: string;
  /**
   * Reads the API key file and the public keys of JWTs again. A gateway looks at its key file by
   * itself. Of the two it keeps what it has where that fails; the log and /ready say which.
   */
  reloadCredentials(): Promise<void>;
  /**
   * Refuses new requests, answers accepted ones, closes everything. `unfinished` counts requests
   * that took longer than `drainMs`.
   */
  close(): Promise<{ readonly unfinished: number }>;
}

/** What createGateway takes besides the settings. */
export interface GatewayOptions {
  /** In place of one made from `logLevel`. */
  readonly log?: Log | undefined;
  /** The names of settings in messages; createGateway's own names when absent. */
  readonly naming?: Naming | undefined;
}

/**
 * A gateway with these settings, which begins with `open` or `listen`. Throws GatewayConfigError at
 * once when they cannot work.
 */
export function createGateway(config: GatewayConfig, options: GatewayOptions = {}): Gateway {
  return createGatewayWith({}, config, options);
}

/** What no operator sets. Tests do, to see it reached. */
export interface GatewayLimits extends Partial<ServerLimits>, Partial<Omit<StoreLimits, keyof Settings>> {
  readonly maxRequests?: number;
  readonly bodyBudgetBytes?: number;
  readonly bodyLookMs?: number;
  readonly answerBudgetBytes?: number;
  readonly answerLookMs?: number;
  readonly answerWaitMs?: number;
  readonly lastRequestMs?: number;
  readonly jwksMaxAgeMs?: number;
}

/** A gateway with other limits than the usual ones. */
export function createGatewayWith(limits: GatewayLimits, config: GatewayConfig, options: GatewayOptions = {}): Gateway {
  return new RunningGateway(limits, config, options);
}

class RunningGateway implements Gateway {
  readonly app: Express;
  readonly adminApp: Express;
  readonly #settings: Settings;
  readonly #limits: GatewayLimits;
  readonly #credentials: Credentials;
  readonly #log: Log;
  readonly #serving: Serving;
  readonly #dispatcher: Dispatcher;
  #store: FencedStore | undefined;
  #page: OperatorPage | undefined;
  #lock: Locker | undefined;
  #stopCounting = (): void => {};
  readonly #ending = new AbortController();
  #opening: Promise<void> | undefined;
  #servers: { readonly api: GatewayServer; readonly admin: Server } | undefined;
  #urls: { readonly api: string; readonly admin: string } | undefined;
  #closing: Promise<{ readonly unfinished: number }> | undefined;

  constructor(limits: GatewayLimits, config: GatewayConfig, { log, naming = (key) => key }: GatewayOptions) {
    const settings = resolveSettings(config, naming);
    this.#settings = settings;
    this.#limits = limits;
    this.#credentials = new Credentials(settings, naming, limits.jwksMaxAgeMs);
    this.#log = log ?? createLog(settings.logLevel);
    const gateway = this;
    const bodies = new Bodies(limits.bodyBudgetBytes, limits.bodyLookMs);
    const { documentLimitBytes, readTimeoutMs } = this.#storeLimits;
    const sending = new Sending({
      documentLimitBytes,
      maxWaitMs: limits.answerWaitMs ?? readTimeoutMs,
      budgetBytes: limits.answerBudgetBytes,
      lookEveryMs: limits.answerLookMs,
    });
    this.#serving = {
      get store(): FencedStore {
        if (gateway.#store === undefined) throw new Error("the gateway is not open yet: await listen() or open() first");
        return gateway.#store;
      },
      authenticator: this.#credentials.authenticator,
      rateLimit: new RateLimit(settings.rateLimitPerSecond),
      bodies,
      sending,
      bodyLimitBytes: settings.bodyLimitBytes,
      maxRequests: limits.maxRequests ?? MAX_REQUESTS,
      log: this.#log,
      metrics: new Metrics({
        stats: () => this.#store?.stats(),
        requestsInFlight: () => this.#dispatcher.inFlight,
        bodyBytesHeld: () => bodies.shares.held,
        answerBytesHeld: () => sending.shares.held,
      }),
      refusals: new RefusalRing(),
      description: openApiText(),
    };
    this.#dispatcher = new Dispatcher(this.#serving);
    this.app = createApp(this.#dispatcher);
    this.adminApp = createAdminApp({ ready: () => this.#ready(), metrics: () => this.#serving.metrics.text() });
  }

  get #storeLimits(): StoreLimits {
    // A document may be as large as the body that brings it.
    const documentLimitBytes = Math.max(presetLimits.documentLimitBytes, this.#settings.bodyLimitBytes);
    return storeLimits({ documentLimitBytes, ...this.#settings, ...this.#limits });
  }

  get url(): string {
    return this.#urls?.api ?? notListening();
  }

  get adminUrl(): string {
    return this.#urls?.admin ?? notListening();
  }

  open(): Promise<void> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    const settings = this.#settings;
    if (this.#credentials.isOpen)
      this.#log.warn(
        "NO CREDENTIALS ARE WANTED: whatever connects from this machine may read, write and move fences, also a proxy for callers elsewhere",
      );
    if (settings.migrations === "on") await bringUpToDate(settings.databaseUrl, this.#log, { signal: this.#ending.signal });
    else await refuseUnfitDatabase(settings.databaseUrl, this.#storeLimits.connectTimeoutMs);
    const mode = verifyMode(settings);
    if (settings.redisUrls !== undefined && (mode !== "off" || settings.page === "on")) await this.#connectToLock(settings.redisUrls);
    const lock = this.#verifyingLock;
    const { verify: _mode, ...storeSettings } = settings;
    this.#store = await openStore({
      ...storeSettings,
      ...this.#storeLimits,
      marks: settings.restoreCheck === "on" ? lock?.fleet : undefined,
      verify: lock === undefined ? undefined : verifyWith(lock, this.#log),
      verifyUnreachable: mode === "open" ? "accept" : "refuse",
      observe: (event) => {
        this.#serving.metrics.storeEvent(event);
        if (event.kind === "connection_error") this.#log.warn({ err: event.error }, "a connection to Postgres failed");
        if (event.kind === "refused_by_database") this.#log.warn({ err: event.error }, "Postgres did not execute a write");
      },
    });
    const { checks } = await this.#store.ready();
    const encoding = checks.find(({ name, status }) => name === "encoding" && status === "failed");
    if (encoding !== undefined) {
      await Promise.all([this.#store.close(), this.#leaveLock()]);
      throw new MigrationError(`the database has the encoding ${encoding.detail}`);
    }
    for (const { name, status, detail } of checks)
      if (status === "failed") this.#log.error({ check: name, detail }, "not ready: writes may be refused");
    if (settings.page === "on") {
      const ready = () => this.#ready();
      this.#page = mountPage({ app: this.adminApp, dispatcher: this.#dispatcher, serving: this.#serving, lock: this.#lock, ready });
    }
    this.#credentials.watch(() => void this.reloadCredentials());
  }

  async listen(): Promise<void> {
    await this.open();
    const { host, port, adminHost, adminPort, idleTimeoutMs } = this.#settings;
    const limits = { ...serverLimits, ...this.#limits, idleTimeoutMs };
    const api = createGatewayServer(this.app, limits, this.#log);
    const admin = createGatewayServer(this.adminApp, { ...limits, maxConnections: MAX_ADMIN_CONNECTIONS }, this.#log);
    this.#servers = { api, admin };
    await listenOn(api, { host, port });
    await listenOn(admin, { host: adminHost ?? host, port: adminPort });
    this.#urls = { api: urlOf(api), admin: urlOf(admin) };
    const { url, adminUrl } = this;
    this.#log.info({ url, adminUrl, credentials: this.#credentials.summary, verify: verifyMode(this.#settings) }, "listening");
  }

  async reloadCredentials(): Promise<void> {
    try {
      await this.#credentials.reload();
      this.#log.info({ credentials: this.#credentials.summary }, "the credentials were read again");
    } catch (error) {
      this.#log.error({ err: error }, "not all credentials could be read again");
    }
  }

  async #connectToLock(redisUrls: readonly string[]): Promise<void> {
    this.#lock = await connectToLock(redisUrls, this.#settings.namespace);
    this.#stopCounting = lockMetrics(this.#serving.metrics.registry, this.#lock);
  }

  async #leaveLock(): Promise<void> {
    this.#stopCounting();
    await this.#lock?.close();
  }

  /** The page looks at the lock also where tokens are taken on trust. */
  get #verifyingLock(): Locker | undefined {
    return verifyMode(this.#settings) === "off" ? undefined : this.#lock;
  }

  async #ready(): Promise<Readiness> {
    const readiness = (await this.#store?.ready()) ?? { ready: false, checks: [] };
    const lock = this.#verifyingLock;
    const checks = [...readiness.checks, ...(lock === undefined ? [] : [await lockReadiness(lock)]), this.#credentials.readiness];
    if (this.#closing === undefined) return { ready: readiness.ready, checks };
    return {
      ready: false,
      checks: [...checks, { name: "shutdown", status: "failed", detail: "the gateway is finishing its last requests" }],
    };
  }

  close(): Promise<{ readonly unfinished: number }> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<{ readonly unfinished: number }> {
    const { drainMs, unreadyMs } = this.#settings;
    const { lastRequestMs = drainMs / 10 } = this.#limits;
    this.#ending.abort();
    this.#credentials.close();
    this.#page?.close();
    const closed: Promise<void>[] = [];
    // /ready already fails; a load balancer in front gets the time to notice.
    if (this.#servers !== undefined && unreadyMs > 0) await sleep(unreadyMs);
    const endsAt = performance.now() + drainMs;
    const leftMs = (): number => Math.max(0, endsAt - performance.now());
    if (this.#servers !== undefined) {
      const { api } = this.#servers;
      // The listener closes while clients still keep their connections: after they were told to
      // close them they would connect again, and a connection that the kernel has accepted and the
      // gateway has not is reset when the listener closes.
      closed.push(api.stopListening());
      this.#dispatcher.closeConnections();
      await api.allClosed(lastRequestMs);
    }
    const drained = this.#dispatcher.drain();
    this.#servers?.api.closeIdleSockets();
    await within(drained, leftMs());
    const unfinished = this.#dispatcher.inFlight;
    await this.#servers?.api.allClosed(leftMs());
    await this.#store?.close({ drainMs: leftMs() });
    this.#servers?.api.close(); // Also ends Node's search for overdue requests.
    this.#servers?.api.closeAllConnections();
    await this.#leaveLock();
    if (this.#servers !== undefined) closed.push(closeServer(this.#servers.admin));
    this.#servers?.admin.closeAllConnections();
    await Promise.all(closed);
    this.#log.info({ unfinished }, "closed");
    return { unfinished };
  }
}

function notListening(): never {
  throw new Error("the gateway is not listening: await listen() first");
}

async function within(work: Promise<void>, limitMs: number): Promise<void> {
  const timer = new AbortController();
  await Promise.race([work, sleep(limitMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}

// The lock, which is asked whether it ever issued a token, once per raise. "Could not be asked" must
// stay distinct from "never issued": the first is a fault, the second an alarm (G4).

// A write waits for the answer, so it must come soon or not at all.
const ANSWER_WITHIN_MS = 1_000;

// Imported only here: a gateway that trusts tokens needs no Redis client in its memory.
export async function connectToLock(redisUrls: readonly string[], namespace: string | undefined): Promise<Locker> {
  const { createLocker } = await import("@palisade/lock");
  return createLocker({
    nodes: redisUrls,
    label: "palisade-gateway",
    waitMs: ANSWER_WITHIN_MS,
    ...(namespace === undefined ? {} : { namespace }),
  });
}

/** Not "failed": holders whose token already is the fence can write without the lock. */
async function lockReadiness(lock: Locker): Promise<ReadinessCheck> {
  try {
    await lock.ready();
    return { name: "lock", status: "ok", detail: "a quorum of its nodes answers" };
  } catch (error) {
    return {
      name: "lock",
      status: "warning",
      detail: `tokens that would raise a fence cannot be verified: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

function verifyWith(lock: Locker, log: Log): VerifyToken {
  return async (resource, token) => {
    try {
      return (await lock.fleet.issued(resource, token)) ? "issued" : "unissued";
    } catch (error) {
      log.warn({ resource, token, err: error }, "the lock could not be asked whether it issued this token");
      return "unreachable";
    }
  };
}

// The database at start. A gateway and its Postgres may be started together, so it is waited for;
// errors that waiting cannot mend end the start.

const PAUSE_MS = 1_000;
// Postgres does not listen yet, is still starting up (57P03), is short of connections (53300), or
// waits for its promotion (25006).
const passing = new Set(["ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "57P03", "53300", "25006"]);

interface Wait {
  readonly maxWaitMs?: number;
  /** Aborts when the gateway is to end: then this ends, and the schema may be as it was. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Ends the start on a database that no gateway may write to. A standby may be promoted, and is
 * waited for.
 */
export async function bringUpToDate(databaseUrl: string, log: Log, wait: Wait = {}): Promise<void> {
  await onceThere(log, wait, async () => {
    await demandFitDatabase(databaseUrl);
    const { applied } = await migrate(databaseUrl);
    if (applied.length > 0) log.info({ applied }, "the schema was brought up to date");
  });
}

/**
 * For a gateway that does not migrate, which starts while Postgres is away, silent or a standby: it
 * is not ready until that has passed.
 */
async function refuseUnfitDatabase(databaseUrl: string, timeoutMs: number): Promise<void> {
  try {
    await demandFitDatabase(databaseUrl, timeoutMs);
  } catch (error) {
    if (error instanceof EngineError && !isPassing(error)) throw error;
  }
}

async function onceThere(log: Log, { maxWaitMs = 30_000, signal }: Wait, work: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const waitedMs = performance.now() - startedAt;
      if (!isPassing(error)) throw error;
      if (waitedMs > maxWaitMs)
        throw new Error(`Postgres was not there within ${(waitedMs / 1_000).toFixed(1)} s: ${reasonOf(error)}`, { cause: error });
      log.warn({ code: codeOf(error), reason: reasonOf(error) }, "Postgres is not there yet");
      // A wait that was cut short has nothing more to say.
      await sleep(Math.min(PAUSE_MS, maxWaitMs), undefined, { signal }).catch(() => undefined);
      if (signal?.aborted === true) throw error;
    }
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && passing.has(code);
}

/** The code of an error or of what caused it. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  return code !== undefined && passing.has(code) ? code : (codeOf(error.cause) ?? code);
}

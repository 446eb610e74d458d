// One gateway from start to stop: puts the parts together, opens the two ports, and closes
// everything in the order that loses no accepted request.
import type { RequestListener, Server } from "node:http";
import type { Locker } from "@palisade/lock";
import type { OperatorPage } from "@palisade/page";
import type { Express } from "express";
import { createApp } from "./app.js";
import type { FencedStore, Readiness } from "./fenced-store.js";
import { BODY_BUDGET_BYTES, BodyBudget } from "./http/body.js";
import { Dispatcher, MAX_REQUESTS, RateLimit } from "./http/dispatcher.js";
import { openApiText } from "./http/openapi.js";
import { mountPage } from "./http/operator-page.js";
import { noteRefused } from "./http/routes/reports.js";
import {
  closeServer,
  createAdminApp,
  createGatewayServer,
  type GatewayServer,
  listenOn,
  MAX_ADMIN_CONNECTIONS,
  notListening,
  urlOf,
} from "./http/server.js";
import { presetLimits, type ServerLimits, type StoreLimits, serverLimits, storeLimits } from "./limits.js";
import { bringUpToDate, refuseUnfitDatabase } from "./migrate-at-start.js";
import { createLog, type Log } from "./observe/log.js";
import { Metrics } from "./observe/metrics.js";
import { RefusalRing } from "./observe/refusals.js";
import { openStore, type StoreConfig } from "./postgres-store.js";
import { type GatewayConfig, GatewayConfigError, type Naming, resolveSettings, verifyMode } from "./settings/config.js";
import { type Credentials, loadCredentials } from "./settings/credentials.js";
import type { Settings } from "./settings/settings.js";
import { MigrationError } from "./store/migrate.js";
import { connectToLock, lockReadiness, verifyWith } from "./verify-with-lock.js";

/** One gateway of this process, not yet listening. */
export interface Gateway {
  /** The Express application, to mount elsewhere: then call open() in place of listen(). */
  readonly app: RequestListener;
  /**
   * Migrates and opens the store, without a port. The server that `app` is mounted in may listen
   * anywhere, so a gateway without credentials wants the word that this is meant; it still answers
   * only callers on its own machine.
   */
  open(options?: OpenOptions): Promise<void>;
  /** open(), then both ports. */
  listen(): Promise<void>;
  /** Where the API listens, after `listen`. */
  readonly url: string;
  /** Where the probes and metrics listen, after `listen`. */
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

/** What `open` takes. */
export interface OpenOptions {
  /** Must be there when no credentials are configured. */
  readonly credentials?: "none" | undefined;
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
  readonly lastRequestMs?: number;
  readonly jwksMaxAgeMs?: number;
}

/** A gateway with other limits than the usual ones. */
export function createGatewayWith(limits: GatewayLimits, config: GatewayConfig, options: GatewayOptions = {}): Gateway {
  const naming = options.naming ?? ((key) => key);
  const settings = resolveSettings(config, naming);
  const credentials = loadCredentials(settings, naming, limits.jwksMaxAgeMs);
  return new RunningGateway({ settings, limits, credentials, log: options.log ?? createLog(settings.logLevel) });
}

interface GatewayParts {
  readonly settings: Settings;
  readonly limits: GatewayLimits;
  readonly credentials: Credentials;
  readonly log: Log;
}

class RunningGateway implements Gateway {
  readonly app: Express;
  readonly #settings: Settings;
  readonly #limits: GatewayLimits;
  readonly #credentials: Credentials;
  readonly #log: Log;
  readonly #budget: BodyBudget;
  readonly #metrics: Metrics;
  readonly #dispatcher: Dispatcher;
  #store: FencedStore | undefined;
  #page: OperatorPage | undefined;
  readonly #refusals = new RefusalRing();
  #lock: Locker | undefined;
  readonly #ending = new AbortController();
  #opening: Promise<void> | undefined;
  #servers: { readonly api: GatewayServer; readonly admin: Server } | undefined;
  #urls: { readonly api: string; readonly admin: string } | undefined;
  #closing: Promise<{ readonly unfinished: number }> | undefined;

  constructor({ settings, limits, credentials, log }: GatewayParts) {
    this.#settings = settings;
    this.#limits = limits;
    this.#credentials = credentials;
    this.#log = log;
    this.#budget = new BodyBudget(limits.bodyBudgetBytes ?? Math.max(BODY_BUDGET_BYTES, settings.bodyLimitBytes));
    this.#metrics = new Metrics({
      stats: () => this.#store?.stats(),
      requestsInFlight: () => this.#dispatcher.inFlight,
      bodyBytesHeld: () => this.#budget.heldBytes,
    });
    this.#dispatcher = new Dispatcher({
      authenticator: credentials.authenticator,
      rateLimit: new RateLimit(settings.rateLimitPerSecond),
      budget: this.#budget,
      maxRequests: limits.maxRequests ?? MAX_REQUESTS,
      log,
      metrics: this.#metrics,
      onRefusal: (problem, context) => noteRefused(this.#refusals, problem, context),
    });
    this.app = this.#createApp();
  }

  get url(): string {
    return this.#urls?.api ?? notListening();
  }

  get adminUrl(): string {
    return this.#urls?.admin ?? notListening();
  }

  async open({ credentials }: OpenOptions = {}): Promise<void> {
    if (this.#credentials.isOpen && credentials !== "none")
      throw new GatewayConfigError([
        'open() mounts this gateway in a server that may be reached from anywhere, and no credentials are configured: set apiKeysFile, apiKeys or a JWT setting, or call open({ credentials: "none" }) to serve every caller on this machine.',
      ]);
    this.#opening ??= this.#open();
    await this.#opening;
  }

  async listen(): Promise<void> {
    await this.open({ credentials: this.#credentials.isOpen ? "none" : undefined });
    const { host, port, adminHost, adminPort, idleTimeoutMs } = this.#settings;
    const limits = { ...serverLimits, ...this.#limits, idleTimeoutMs };
    const api = createGatewayServer(this.app, limits);
    const adminApp = createAdminApp({ ready: () => this.#ready(), metrics: () => this.#metrics.text() });
    if (this.#settings.page === "on") this.#page = this.#mountPage(adminApp);
    const admin = createGatewayServer(adminApp, { ...limits, maxConnections: MAX_ADMIN_CONNECTIONS });
    this.#servers = { api, admin };
    await listenOn(api, { host, port });
    await listenOn(admin, { host: adminHost ?? host, port: adminPort });
    this.#urls = { api: urlOf(api), admin: urlOf(admin) };
    this.#log.info(
      { url: this.url, adminUrl: this.adminUrl, credentials: this.#credentials.summary, verify: verifyMode(this.#settings) },
      "listening",
    );
  }

  async reloadCredentials(): Promise<void> {
    try {
      await this.#credentials.reload();
      this.#log.info({ credentials: this.#credentials.summary }, "the credentials were read again");
    } catch (error) {
      this.#log.error({ err: error }, "not all credentials could be read again");
    }
  }

  close(): Promise<{ readonly unfinished: number }> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #createApp(): Express {
    const gateway = this;
    return createApp({
      get store(): FencedStore {
        return gateway.#openStore;
      },
      dispatcher: this.#dispatcher,
      refusals: this.#refusals,
      metrics: this.#metrics,
      budget: this.#budget,
      bodyLimitBytes: this.#settings.bodyLimitBytes,
      description: openApiText(),
    });
  }

  #mountPage(adminApp: Express): OperatorPage {
    return mountPage(adminApp, {
      dispatcher: this.#dispatcher,
      authenticator: this.#credentials.authenticator,
      budget: this.#budget,
      metrics: this.#metrics,
      refusals: this.#refusals,
      log: this.#log,
      store: this.#openStore,
      lock: this.#lock,
    });
  }

  get #openStore(): FencedStore {
    if (this.#store === undefined) throw new Error("the gateway is not open yet: await listen() or open() first");
    return this.#store;
  }

  async #open(): Promise<void> {
    const settings = this.#settings;
    if (this.#credentials.isOpen)
      this.#log.warn(
        "NO CREDENTIALS ARE CONFIGURED: every caller that reaches this port may read, write and move fences; it listens on loopback only",
      );
    if (settings.migrations === "on") await bringUpToDate(settings.databaseUrl, this.#log, { signal: this.#ending.signal });
    else await refuseUnfitDatabase(settings.databaseUrl, storeLimits({ ...settings, ...this.#limits }).connectTimeoutMs);
    if (settings.redisUrls !== undefined && (verifyMode(settings) !== "off" || settings.page === "on"))
      this.#lock = await connectToLock(settings.redisUrls, settings.namespace);
    this.#store = await openStore(this.#storeConfig());
    const { checks } = await this.#store.ready();
    const encoding = checks.find(({ name, status }) => name === "encoding" && status === "failed");
    if (encoding !== undefined) {
      await Promise.all([this.#store.close(), this.#lock?.close()]);
      throw new MigrationError(`the database has the encoding ${encoding.detail}`);
    }
    for (const { name, status, detail } of checks)
      if (status === "failed") this.#log.error({ check: name, detail }, "not ready: writes may be refused");
    this.#credentials.watch(() => void this.reloadCredentials());
  }

  #storeConfig(): StoreConfig {
    const { verify: _mode, ...settings } = this.#settings;
    const lock = this.#verifyingLock;
    return {
      // A document may be as large as the body that brings it.
      documentLimitBytes: Math.max(presetLimits.documentLimitBytes, settings.bodyLimitBytes),
      ...settings,
      ...this.#limits,
      memory: settings.restoreCheck === "on" ? lock?.fleet : undefined,
      verify: lock === undefined ? undefined : verifyWith(lock, this.#log),
      verifyUnreachable: verifyMode(this.#settings) === "open" ? "accept" : "refuse",
      observe: (event) => {
        this.#metrics.storeEvent(event);
        if (event.kind === "connection_error") this.#log.warn({ err: event.error }, "a connection to Postgres failed");
        if (event.kind === "refused_by_database") this.#log.warn({ err: event.error }, "Postgres did not execute a write");
      },
    };
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

  async #close(): Promise<{ readonly unfinished: number }> {
    const { drainMs, unreadyMs } = this.#settings;
    const { lastRequestMs = drainMs / 10 } = this.#limits;
    this.#ending.abort();
    this.#credentials.close();
    this.#page?.close();
    const closed: Promise<void>[] = [];
    // /ready already fails; a load balancer in front gets the time to notice.
    if (this.#servers !== undefined && unreadyMs > 0) await new Promise((resolve) => setTimeout(resolve, unreadyMs));
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
    this.#servers?.api.close(); // Also ends Node's search for overdue requests.
    this.#servers?.api.closeIdleSockets();
    await within(drained, leftMs());
    const unfinished = this.#dispatcher.inFlight;
    await this.#store?.close({ drainMs: leftMs() });
    this.#servers?.api.closeAllConnections();
    await this.#lock?.close();
    if (this.#servers !== undefined) closed.push(closeServer(this.#servers.admin));
    this.#servers?.admin.closeAllConnections();
    await Promise.all(closed);
    this.#log.info({ unfinished }, "closed");
    return { unfinished };
  }
}

async function within(work: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([work, limit]);
  clearTimeout(timer);
}

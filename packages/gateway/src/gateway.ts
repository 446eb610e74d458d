// One gateway from start to stop: puts the parts together, opens the two ports, and closes
// everything in the order that loses no accepted request.
import type { RequestListener, Server } from "node:http";
import type { Locker } from "@palisade/lock";
import type { Express } from "express";
import { createApp } from "./app.js";
import type { FencedStore, Readiness } from "./fenced-store.js";
import { createAdminApp, MAX_ADMIN_CONNECTIONS } from "./http/admin.js";
import { BodyBudget } from "./http/body.js";
import { Dispatcher, RateLimit } from "./http/dispatcher.js";
import { closeServer, listenOn, notListening, urlOf } from "./http/listener.js";
import { openApiText } from "./http/openapi.js";
import { noteRefused } from "./http/routes/refusals.js";
import { createGatewayServer, type GatewayServer } from "./http/server.js";
import { bringUpToDate, refuseUnfitDatabase } from "./migrate-at-start.js";
import { createLog, type Log } from "./observe/log.js";
import { Metrics } from "./observe/metrics.js";
import { OperatorPage } from "./page/page.js";
import { openStore, type StoreConfig } from "./postgres-store.js";
import { type GatewayConfig, GatewayConfigError, type Naming, resolveSettings, verifyMode } from "./settings/config.js";
import { type Credentials, loadCredentials } from "./settings/credentials.js";
import type { Settings } from "./settings/setting-values.js";
import { MigrationError } from "./store/migrate.js";
import { storeLimits } from "./store/store-limits.js";
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
  const naming = options.naming ?? ((key) => key);
  const settings = resolveSettings(config, naming);
  return new RunningGateway(settings, loadCredentials(settings, naming), options.log ?? createLog(settings.logLevel));
}

class RunningGateway implements Gateway {
  readonly app: Express;
  readonly #settings: Settings;
  readonly #credentials: Credentials;
  readonly #log: Log;
  readonly #budget: BodyBudget;
  readonly #metrics: Metrics;
  readonly #dispatcher: Dispatcher;
  #store: FencedStore | undefined;
  readonly #page: OperatorPage | undefined;
  #lock: Locker | undefined;
  readonly #ending = new AbortController();
  #opening: Promise<void> | undefined;
  #servers: { readonly api: GatewayServer; readonly admin: Server } | undefined;
  #urls: { readonly api: string; readonly admin: string } | undefined;
  #closing: Promise<{ readonly unfinished: number }> | undefined;

  constructor(settings: Settings, credentials: Credentials, log: Log) {
    this.#settings = settings;
    this.#credentials = credentials;
    this.#log = log;
    this.#budget = new BodyBudget(settings.bodyBudgetBytes);
    this.#metrics = new Metrics({
      stats: () => this.#store?.stats(),
      requestsInFlight: () => this.#dispatcher.inFlight,
      bodyBytesHeld: () => this.#budget.heldBytes,
    });
    this.#dispatcher = new Dispatcher({
      authenticator: credentials.authenticator,
      rateLimit: new RateLimit(settings.rateLimitPerSecond),
      budget: this.#budget,
      maxRequests: settings.maxRequests,
      log,
      metrics: this.#metrics,
      onRefusal: (problem, context) => noteRefused([this.#store?.refusals, this.#page?.refusals], problem, context),
    });
    this.#page = settings.page === "on" ? this.#createPage() : undefined;
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
    const { host, port, adminHost, adminPort } = this.#settings;
    const api = createGatewayServer(this.app, this.#settings);
    const addPage = this.#page && ((app: Express) => this.#page?.addTo(app));
    const adminApp = createAdminApp({ ready: () => this.#ready(), metrics: () => this.#metrics.text(), addPage });
    const maxConnections = Math.min(this.#settings.maxConnections, MAX_ADMIN_CONNECTIONS);
    const admin = createGatewayServer(adminApp, { ...this.#settings, maxConnections });
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
      metrics: this.#metrics,
      budget: this.#budget,
      authenticator: this.#credentials.authenticator,
      bodyLimitBytes: this.#settings.bodyLimitBytes,
      keepAliveMs: Math.min(10_000, this.#settings.idleTimeoutMs / 3),
      description: openApiText(),
    });
  }

  #createPage(): OperatorPage {
    const { history, refusedLog } = this.#settings;
    return new OperatorPage({
      dispatcher: this.#dispatcher,
      authenticator: this.#credentials.authenticator,
      budget: this.#budget,
      metrics: this.#metrics,
      log: this.#log,
      store: () => this.#openStore,
      lock: () => this.#lock,
      keepsHistory: history === "on",
      keepsRefusals: refusedLog === "on",
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
    else await refuseUnfitDatabase(settings.databaseUrl, storeLimits(settings).connectTimeoutMs);
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
      ...settings,
      memory: settings.restoreCheck === "on" ? lock : undefined,
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
    const { drainMs, unreadyMs, lastRequestMs } = this.#settings;
    this.#ending.abort();
    this.#credentials.close();
    this.#page?.close();
    const closed: Promise<void>[] = [];
    if (this.#servers !== undefined) {
      const { api } = this.#servers;
      // /ready already fails; a load balancer in front gets the time to notice.
      if (unreadyMs > 0) await new Promise((resolve) => setTimeout(resolve, unreadyMs));
      // The listener closes while clients still keep their connections: after they were told to
      // close them they would connect again, and a connection that the kernel has accepted and the
      // gateway has not is reset when the listener closes.
      this.#store?.changes?.end();
      closed.push(api.stopListening());
      this.#dispatcher.closeConnections();
      await api.allClosed(lastRequestMs);
    }
    const startedAt = performance.now();
    const drained = this.#dispatcher.drain();
    this.#servers?.api.close(); // Also ends Node's search for overdue requests.
    this.#servers?.api.closeIdleSockets();
    await within(drained, drainMs);
    const unfinished = this.#dispatcher.inFlight;
    await this.#store?.close({ drainMs: Math.max(0, drainMs - (performance.now() - startedAt)) });
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

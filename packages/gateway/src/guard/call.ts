// Calls a function of the user's database in one transaction whose first act is the guard. The
// connections are of a role of their own, so that a function runs with that role's rights and not
// with the gateway's. Until COMMIT is sent every failure is certainly not applied.
import { type FencedLease, FencedTransactionError, GuardError } from "@palisade/guard";
import { fencedTransaction, mayBeCommitted, onPool, type ServerError, serverErrorOf, type TransactionParts } from "@palisade/guard/gateway";
import pg from "pg";
import { isRace, unavailableReason } from "../fence/failure.js";
import type { CallRequest, CallVerdict, Issued, OutcomeUnknown, Unavailable, VerifyToken } from "../fence/verdict.js";
import { DatabaseHost } from "../store/database-host.js";
import type { EngineWatch } from "../store/engine-watch.js";
import type { ReadinessCheck } from "../store/readiness.js";
import { type Durability, leavesDoubt } from "../store/session.js";
import type { RaiseCheck } from "./raise-check.js";

export interface CallConfig {
  /** Functions of the user's database that may be called, and the URL to it under their role. */
  readonly callFunctions?: readonly string[] | undefined;
  readonly callDatabaseUrl?: string | undefined;
}

interface CallParts {
  readonly host: DatabaseHost;
  /** Schema and name of each function that may be called. */
  readonly functions: ReadonlySet<string>;
  readonly durability: Durability;
  readonly engine: Pick<EngineWatch, "known">;
  readonly raises: RaiseCheck;
  readonly limits: {
    readonly statementsInFlight: number;
    readonly maxQueuedWrites: number;
    readonly maxWaitMs: number;
    readonly lockWaitMs: number;
    readonly statementTimeoutMs: number;
    readonly writeTimeoutMs: number;
  };
  readonly onIdleError: (error: Error) => void;
}

/** Undefined where no function may be called. */
export function openCalls(config: CallConfig, parts: Omit<CallParts, "host" | "functions">): Calls | undefined {
  const { callFunctions, callDatabaseUrl } = config;
  if (callFunctions === undefined || callDatabaseUrl === undefined) return undefined;
  return new Calls({ ...parts, host: new DatabaseHost(callDatabaseUrl), functions: new Set(callFunctions) });
}

const MAX_ATTEMPTS = 5;
const CALL = `
  select palisade.call_function($1, $2::jsonb, pg_catalog.current_setting('search_path'))::text as value,
    pg_catalog.current_setting('synchronous_standby_names') as standby_names`;

const RIGHTS = `
  select session_user as role, rolsuper or pg_catalog.has_table_privilege(session_user, 'palisade.resources', 'update, delete, truncate')
    or pg_catalog.has_column_privilege(session_user, 'palisade.resources', 'guarded_by', 'update')
    or pg_catalog.has_column_privilege(session_user, 'palisade.resources', 'token', 'update') as past
  from pg_catalog.pg_roles where rolname = session_user`;

/** At COMMIT, Citus tells warnings of workers at this level only. */
const TELL_ALL =
  "select pg_catalog.set_config('client_min_messages', 'debug1', true) from pg_catalog.pg_extension where extname = 'citus';";

/** Ends the transaction before COMMIT, with this answer. */
class CallEnd extends Error {
  constructor(readonly verdict: CallVerdict) {
    super("the call is rolled back");
  }
}

const closing: Unavailable = { kind: "unavailable", reason: "closing", outcome: "not_applied" };
const overloaded: Unavailable = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };

export class Calls {
  readonly #parts: CallParts;
  readonly #pool: pg.Pool;
  /** Committed here, but the wait for the standby was cut short: a notice is the only trace. */
  readonly #notReplicated = new WeakSet<object>();
  readonly #settings: string;

  constructor(parts: CallParts) {
    const { host, limits, onIdleError } = parts;
    class HostClient extends pg.Client {
      constructor(options?: pg.ClientConfig) {
        super({ ...options, connectionString: host.known });
      }
    }
    this.#parts = parts;
    this.#pool = new pg.Pool({
      Client: HostClient,
      max: limits.statementsInFlight,
      application_name: "palisade-gateway-calls",
      keepAlive: true,
      // Also bounds the wait for a free connection.
      connectionTimeoutMillis: limits.maxWaitMs,
      query_timeout: limits.writeTimeoutMs,
    });
    this.#pool.on("error", (error) => {
      host.forget();
      onIdleError(error);
    });
    this.#pool.on("connect", (client) => {
      client.on("notice", (notice) => {
        if (leavesDoubt(notice, this.#parts.engine.known?.kind)) this.#notReplicated.add(client);
      });
    });
    this.#settings = `${TELL_ALL} set local lock_timeout = ${limits.lockWaitMs}; set local statement_timeout = ${limits.statementTimeoutMs};
      select pg_catalog.set_config('synchronous_commit',
        case pg_catalog.current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true);`;
  }

  async call(request: CallRequest): Promise<CallVerdict> {
    if (!this.#parts.functions.has(request.function))
      return { kind: "function_unknown", message: "This is none of the functions that may be called here." };
    if (this.#pool.ending) return closing;
    if (this.#pool.waitingCount >= this.#parts.limits.maxQueuedWrites) return overloaded;
    for (let attempts = 1; ; attempts += 1) {
      const verdict = await this.#attempt(request);
      const isLost = verdict.kind === "refused" && verdict.refusal.kind === "contention" && isRace(verdict.refusal.code);
      if (!isLost || attempts === MAX_ATTEMPTS) return await this.#confirmed(request, verdict);
    }
  }

  /** Which role the functions run as, and whether it could write past a fence. */
  async readiness(): Promise<ReadinessCheck> {
    try {
      if (this.#parts.host.known === undefined) await this.#parts.host.url();
      const { rows } = await this.#pool.query<{ role: string; past: boolean }>(RIGHTS);
      const { role, past } = rows[0] ?? { role: "", past: true };
      if (past) return { name: "calls", status: "warning", detail: `functions run as ${role}, which can write past a fence` };
      return { name: "calls", status: "ok", detail: `functions run as ${role}` };
    } catch (error) {
      return {
        name: "calls",
        status: "warning",
        detail: `no function can be called: ${error instanceof Error ? error.message : String(error)}`,
      };
    }
  }

  async end(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end();
  }

  async #attempt(request: CallRequest): Promise<CallVerdict> {
    const { raises } = this.#parts;
    const asked = new Set<string>();
    const verify: VerifyToken = async (resource, token) => {
      asked.add(resource);
      const answer = await raises.ask(resource, token);
      return answer === "verified" ? "issued" : (answer satisfies Issued);
    };
    const leases = request.leases.map((lease) => ({
      ...lease,
      holder: request.holder,
      verify: raises.verificationOf(lease.resource, lease.token) === "verified" ? undefined : verify,
    }));
    try {
      if (this.#parts.host.known === undefined) await this.#parts.host.url();
      const value = await this.#run(leases, (client) => this.#callIn(client, request));
      for (const { resource, token } of leases) raises.accepted(resource, token, asked.has(resource) ? "asked" : "not asked");
      return { kind: "called", value };
    } catch (error) {
      if (serverErrorOf(error) === undefined) this.#parts.host.forget();
      return verdictOf(error, request);
    }
  }

  async #run<T>(leases: FencedLease | readonly FencedLease[], work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let used: pg.PoolClient | undefined;
    const run = async (parts: TransactionParts<pg.PoolClient>) => (await onPool(this.#pool, parts, this.#settings)).failure;
    const value = await fencedTransaction(run, leases, async (client) => {
      used = client;
      return await work(client);
    });
    if (used !== undefined && this.#notReplicated.delete(used)) throw new CallEnd(notReplicated);
    return value;
  }

  async #callIn(client: pg.PoolClient, request: CallRequest): Promise<string> {
    const { rows } = await client.query<{ value: string | null; standby_names: string }>(CALL, [request.function, request.arguments]);
    const { value, standby_names: names } = rows[0] ?? { value: null, standby_names: "" };
    if (this.#parts.durability === "sync" && names === "")
      throw new CallEnd({ kind: "unavailable", reason: "not_durable", outcome: "not_applied" });
    const answer = value ?? "null";
    if (Buffer.byteLength(answer) <= request.maxAnswerBytes) return answer;
    const message = `its answer is larger than ${request.maxAnswerBytes} bytes`;
    throw new CallEnd({ kind: "function_failed", sqlState: undefined, message });
  }

  /**
   * From its own sequence number a caller concludes that its earlier try was stored. It is told so
   * only when that one would survive a failover: a seal that the standby has comes after it.
   */
  async #confirmed(request: CallRequest, verdict: CallVerdict): Promise<CallVerdict> {
    if (this.#parts.durability === "local" || verdict.kind !== "refused" || verdict.refusal.kind !== "sequence_out_of_order")
      return verdict;
    const { resource, currentSeq } = verdict.refusal;
    const own = request.leases.find((lease) => lease.resource === resource);
    if (own === undefined || own.seq !== currentSeq) return verdict;
    try {
      await this.#run({ resource, token: own.token }, async () => undefined);
      return verdict;
    } catch (error) {
      const cause = error instanceof Error ? error : undefined;
      return error instanceof GuardError ? verdict : { ...notReplicated, cause };
    }
  }
}

const notReplicated: OutcomeUnknown = { kind: "outcome_unknown", reason: "not_replicated" };

function verdictOf(error: unknown, request: CallRequest): CallVerdict {
  if (error instanceof CallEnd) return error.verdict;
  if (error instanceof GuardError) return guardRefusal(error);
  const server = serverErrorOf(error);
  const cause = error instanceof Error ? error : new Error(String(error));
  if (error instanceof FencedTransactionError) {
    if (error.code !== "outcome_unknown") throw error;
    const isLate = /timeout/i.test(String((error.cause as Error | undefined)?.message));
    return { kind: "outcome_unknown", reason: isLate ? "timed_out" : "connection_lost", cause };
  }
  if (server === undefined || mayBeCommitted(server)) return { kind: "unavailable", reason: "unreachable", outcome: "not_applied", cause };
  return serverVerdict(server, request);
}

function guardRefusal(error: GuardError): CallVerdict {
  const { code, resource, presentedToken, currentToken } = error;
  switch (code) {
    case "fencing_token_stale":
      return { kind: "refused", refusal: { kind: "stale", resource, presentedToken, currentToken } };
    case "sequence_out_of_order":
      return { kind: "refused", refusal: { kind: "sequence_out_of_order", resource, currentSeq: Number(serverErrorOf(error)?.detail) } };
    case "fencing_token_unissued":
      return { kind: "refused", refusal: { kind: "token_unissued", resource, presentedToken } };
    case "verification_unavailable":
      return { kind: "refused", refusal: { kind: "verification_unavailable", resource, presentedToken } };
    case "not_recovered":
      return { kind: "unavailable", reason: "not_recovered", outcome: "not_applied", cause: error };
  }
}

function serverVerdict({ code, message }: ServerError, { leases }: CallRequest): CallVerdict {
  if (code === "PLS09") return { kind: "function_unknown", message };
  if (code === "PLS08") return { kind: "arguments_invalid", message };
  if (isRace(code) || code === "55P03")
    return { kind: "refused", refusal: { kind: "contention", resource: leases[0]?.resource ?? "", code } };
  const reason = unavailableReason(code);
  // The function ran for too long, or met what it cannot do: it would again.
  if (reason === undefined || /^(57014|42|3F|0A)/.test(code)) return { kind: "function_failed", sqlState: code, message };
  return { kind: "unavailable", reason, outcome: "not_applied", cause: new Error(message) };
}

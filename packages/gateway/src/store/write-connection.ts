// One connection that writes. It opens itself when needed, runs one statement or one transaction at a
// time under the gateway's own timer, and says of every failure whether something may have been
// applied. It never retries, and never reuses a session whose state is in doubt.
import pg from "pg";
import { connectFailure, endsSession, type Failure, failureOf } from "../fence/failure.js";
import type { EngineWatch } from "./engine.js";
import type { RestoreCheck } from "./restore-check.js";
import {
  BEGIN,
  beginOnWorkers,
  COMMIT,
  type Durability,
  leavesDoubt,
  OPEN_CITUS_SESSION,
  OPEN_SESSION,
  type SessionLimits,
  type SessionReport,
  sessionFault,
  sessionParameters,
  TRANSACTION_SETTINGS,
} from "./session.js";
import { type ServerProcess, tracing } from "./spans.js";

export interface BoundStatement {
  /** Prepared under it, once per connection; empty: not prepared. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | Buffer | null)[];
  /** Its last parameter, besides the values, is the beat that the database must have (restore-check.ts). */
  readonly demandsBeat?: true;
}

export type Row = readonly unknown[];
export type Reply = { readonly rows: readonly Row[] } | { readonly failure: Failure };

/** A statement of a transaction. One that fails ends the work. */
export type Run = (statement: BoundStatement) => Promise<readonly Row[]>;
/** Rows to commit with, or undefined to undo all. */
export type Work = (run: Run) => Promise<readonly Row[] | undefined>;

/** What the work throws to undo all and say why. */
export class StatementError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.error.message, { cause: failure.error });
  }
}

export interface WriteConnectionOptions extends SessionLimits {
  readonly databaseUrl: string;
  readonly durability: Durability;
  readonly connectTimeoutMs: number;
  readonly engine: Pick<EngineWatch, "known" | "plain" | "fault">;
  /** Absent: whether the database was restored is not asked. */
  readonly restoreCheck?: RestoreCheck | undefined;
  /** From sending to answer. */
  readonly writeTimeoutMs: number;
  /** An error on a connection that was not in use. */
  readonly onIdleError: (error: Error) => void;
  /** Every answer, before it is given. */
  readonly onReply?: ((reply: Reply) => void) | undefined;
}

/** Before the first connection nobody knows that the tables are distributed; nothing was sent. */
const madeForPlain: Failure = {
  kind: "retry",
  code: "race",
  error: new Error("the tables are distributed by Citus, as the first connection tells"),
};

/** int8 as a number: every such column is bounded by 15 digits. */
const numericTypes = {
  getTypeParser: (oid: number, format?: "text" | "binary") => (oid === 20 ? Number : pg.types.getTypeParser(oid, format)),
};

export class WriteConnection {
  readonly #options: WriteConnectionOptions;
  #client: pg.Client | undefined;
  #opening: pg.Client | undefined;
  #isPooled = false;
  #appliesRemotely = false;
  #busy = false;
  /**
   * Set by a notice during a commit: committed here, but the wait for the standby was cut short.
   */
  #notReplicated: Error | undefined;

  constructor(options: WriteConnectionOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  run(statement: BoundStatement): Promise<Reply> {
    const send = (client: pg.Client) => this.#send(client, statement);
    return this.#traced(statement.name, statement.demandsBeat === true ? (client) => this.#unlessRestored(client, send) : send);
  }

  /**
   * Several statements as one transaction, under this name. Until COMMIT is sent every failure is
   * certainly not applied; after that, every failure is unknown: the workers of Citus have committed
   * before the coordinator answers.
   */
  transaction(name: string, work: Work): Promise<Reply> {
    return this.#traced(name, (client) => this.#unlessRestored(client, () => this.#transact(client, work)));
  }

  async #transact(client: pg.Client, work: Work): Promise<Reply> {
    const send = (statement: BoundStatement) => this.#send(client, statement, "within");
    const run: Run = async (statement) => {
      const reply = await send(statement);
      if ("failure" in reply) throw new StatementError(reply.failure);
      return reply.rows;
    };
    let rows: readonly Row[] | undefined;
    let failed: Failure | undefined;
    try {
      for (const statement of this.#begin()) await run(statement);
      rows = await work(run);
    } catch (thrown) {
      const error = asError(thrown);
      const failure: Failure = error instanceof StatementError ? error.failure : { kind: "unavailable", reason: "refused", error };
      failed = notCommitted(failure);
      if (failure.kind === "unknown" && failure.reason === "timed_out") {
        this.destroy(); // The statement may still run, and the answer to the next would be its own.
        return { failure: failed };
      }
    }
    if (rows === undefined) {
      const undone = await send(unnamed("rollback"));
      if ("failure" in undone) this.destroy();
      return failed === undefined ? { rows: [] } : { failure: failed };
    }
    const committed = await send(unnamed(COMMIT[this.#engine]));
    if ("rows" in committed) return { rows };
    const { failure } = committed;
    if (failure.kind === "unknown") return committed;
    return { failure: { kind: "unknown", reason: "connection_lost", error: failure.error } };
  }

  /** On a pooler's connection the transaction brings its settings with it. */
  #begin(): BoundStatement[] {
    if (this.#engine === "citus")
      return [unnamed(beginOnWorkers(this.#options, { appliesRemotely: this.#appliesRemotely, leastBeat: this.#leastBeat }))];
    const settings = unnamed(TRANSACTION_SETTINGS.plain, sessionParameters(this.#options));
    return this.#isPooled ? [unnamed(BEGIN), settings] : [unnamed(BEGIN)];
  }

  #traced(name: string, send: (client: pg.Client) => Promise<Reply>): Promise<Reply> {
    return tracing.spans === undefined ? this.#use(send) : this.#useTraced(name, send);
  }

  async #useTraced(name: string, send: (client: pg.Client) => Promise<Reply>): Promise<Reply> {
    // The name ends in a hash of the text.
    const span = tracing.spans?.statement(name.replace(/-[0-9a-f]{12}$/, ""));
    const before = this.#client;
    const reply = await this.#use(send);
    span?.end(serverOf(this.#client ?? before), "failure" in reply ? failureName(reply.failure) : undefined);
    return reply;
  }

  async #use(send: (client: pg.Client) => Promise<Reply>): Promise<Reply> {
    if (this.#busy) throw new Error("invariant: one statement at a time on a connection");
    this.#busy = true;
    try {
      // The caller's statement was made for it, a moment ago.
      const engine = this.#engine;
      const opened = this.#client ?? (await this.#open());
      const client = opened instanceof pg.Client && this.#engine !== engine ? madeForPlain : opened;
      const reply = client instanceof pg.Client ? await send(client) : { failure: client };
      if (client instanceof pg.Client && "failure" in reply && endsSession(reply.failure)) this.destroy();
      this.#options.onReply?.(reply);
      return reply;
    } finally {
      this.#busy = false;
    }
  }

  async #open(): Promise<pg.Client | Failure> {
    const { databaseUrl, connectTimeoutMs } = this.#options;
    let client: pg.Client | undefined;
    let fault: Failure | undefined;
    try {
      client = new pg.Client({
        connectionString: databaseUrl,
        connectionTimeoutMillis: connectTimeoutMs,
        keepAlive: true,
        application_name: "palisade-gateway",
        types: numericTypes,
      });
      this.#opening = client;
      this.#listen(client);
      await client.connect();
      fault = await this.#setUp(client);
      if (fault === undefined) {
        this.#client = client;
        return client;
      }
    } catch (error) {
      fault = connectFailure(asError(error));
    } finally {
      this.#opening = undefined;
    }
    if (client !== undefined) discard(client);
    return fault;
  }

  /** Why the session must not be written through. */
  async #setUp(client: pg.Client): Promise<Failure | undefined> {
    const { connectTimeoutMs, durability } = this.#options;
    const { processID } = client as unknown as { readonly processID: number | null };
    const values = [...sessionParameters(this.#options), processID];
    const open = { text: OPEN_SESSION, values, query_timeout: connectTimeoutMs };
    const { rows } = await client.query<SessionReport & pg.QueryResultRow>(open);
    const report = rows[0] as SessionReport;
    const fault = sessionFault(report, durability);
    if (fault !== undefined) return fault;
    const query = async (text: string) => (await client.query<Record<string, unknown>>(text)).rows;
    const other = await this.#demandEngine(report, query);
    if (other !== undefined) return { kind: "unavailable", reason: "refused", error: new Error(other) };
    if (report.isPooled) await demandTransactions(client);
    this.#isPooled = report.isPooled;
    this.#appliesRemotely = report.appliesRemotely;
    return undefined;
  }

  /** Costs a database without the extension nothing. */
  async #demandEngine(
    { hasCitus, isPooled }: SessionReport,
    query: (text: string) => Promise<readonly Record<string, unknown>[]>,
  ): Promise<string | undefined> {
    const { engine } = this.#options;
    if (!hasCitus && engine.known?.kind !== "citus") {
      engine.plain();
      return undefined;
    }
    const fault = await engine.fault(query);
    if (fault === undefined && this.#engine === "citus" && !isPooled) await query(OPEN_CITUS_SESSION);
    return fault;
  }

  get #engine(): "plain" | "citus" {
    return this.#options.engine.known?.kind ?? "plain";
  }

  async #unlessRestored(client: pg.Client, send: (client: pg.Client) => Promise<Reply>): Promise<Reply> {
    const looking = this.#options.restoreCheck?.refresh();
    const restored = looking === undefined ? undefined : await looking;
    return restored === undefined ? await send(client) : { failure: notRecovered(restored) };
  }

  get #leastBeat(): string | null {
    const { restoreCheck } = this.#options;
    return restoreCheck === undefined ? null : String(restoreCheck.least);
  }

  #listen(client: pg.Client): void {
    client.on("error", (error) => {
      if (this.#client !== client) return;
      this.#client = undefined;
      if (!this.#busy) this.#options.onIdleError(error); // A running statement reports the error itself.
    });
    client.on("end", () => {
      if (this.#client === client) this.#client = undefined;
    });
    client.on("notice", (notice) => {
      if (leavesDoubt(notice, this.#engine)) this.#notReplicated = new Error(`${notice.message ?? "synchronous wait cancelled"}`);
    });
  }

  #send(client: pg.Client, statement: BoundStatement, place: "alone" | "within" = "alone"): Promise<Reply> {
    const { name, text } = statement;
    const values = statement.demandsBeat === true ? [...statement.values, this.#leastBeat] : statement.values;
    this.#notReplicated = undefined;
    return new Promise((resolve) => {
      // node-pg's own query_timeout would leave the statement running, and its answer would go to
      // the next statement.
      const timer = setTimeout(() => {
        const error = new Error(`no answer within ${this.#options.writeTimeoutMs} ms`);
        resolve({ failure: { kind: "unknown", reason: "timed_out", error } }); // run() then ends the connection.
      }, this.#options.writeTimeoutMs);
      const settle = (error: Error | undefined, result: pg.QueryArrayResult | undefined): void => {
        clearTimeout(timer);
        if (this.#notReplicated !== undefined)
          resolve({ failure: { kind: "unknown", reason: "not_replicated", error: this.#notReplicated } });
        else if (error) {
          const failure = failureOf(error);
          if (isNotRecovered(failure)) this.#options.restoreCheck?.found(error.message);
          resolve({ failure });
        } else resolve({ rows: result?.rows ?? [] });
      };
      if (this.#isPooled && place === "alone")
        client.query(new PoolerQuery({ text, values, engine: this.#engine, settings: sessionParameters(this.#options) }, settle) as never);
      else {
        // Of a pooler's connection nothing is prepared by name.
        const preparedName = this.#isPooled || name === "" ? undefined : name;
        client.query({ name: preparedName, text, values: values as string[], rowMode: "array" }, settle as never);
      }
    });
  }

  /**
   * Ends the connection at once: a statement that runs on it ends as connection_lost, one that
   * waits for it as unreachable.
   */
  destroy(): void {
    for (const client of [this.#client, this.#opening]) if (client !== undefined) discard(client);
    this.#client = undefined;
  }

  /** Ends the connection in order, within at most `timeoutMs`. */
  async end(timeoutMs: number): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    const timer = setTimeout(() => discard(client), timeoutMs);
    await client.end();
    clearTimeout(timer);
  }
}

function serverOf(client: pg.Client | undefined): ServerProcess {
  if (client === undefined) return {};
  const { host, port, database } = client;
  return { host, port, database, pid: (client as unknown as { readonly processID?: number }).processID };
}

function failureName(failure: Failure): string {
  return "code" in failure ? failure.code : failure.reason;
}

function notRecovered(why: string): Failure {
  return { kind: "unavailable", reason: "not_recovered", error: new Error(`this database may lack fences: ${why}`) };
}

function isNotRecovered(failure: Failure): boolean {
  return failure.kind === "unavailable" && failure.reason === "not_recovered";
}

/** pg would send Terminate and wait; destroying the socket ends it at once. */
function discard(client: pg.Client): void {
  (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream.destroy();
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function notCommitted(failure: Failure): Failure {
  return failure.kind === "unknown" ? { kind: "unavailable", reason: "unreachable", error: failure.error } : failure;
}

function unnamed(text: string, values: readonly (string | null)[] = []): BoundStatement {
  return { name: "", text, values };
}

// One statement behind a connection pooler. In transaction mode each transaction may run on another
// connection to Postgres, so the settings travel with the statement: two statements before one
// Sync are one transaction, and settings made for the transaction hold until it ends. Prepared
// statements stay without a name, because the connection on which they were prepared is not the
// next one.

/** What node-pg calls on a query, as far as it matters here. */
interface Messages {
  prepare(connection: Wire): void;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, connection: Wire): void;
}
interface Wire {
  parse(statement: { readonly text: string; readonly name: string }): void;
  bind(portal: { readonly values: readonly string[] }): void;
  execute(portal: object): void;
}

const Query = pg.Query as unknown as new (
  config: object,
  values: undefined,
  callback: (error: Error | undefined, result: pg.QueryArrayResult | undefined) => void,
) => Messages;

interface PoolerStatement {
  readonly text: string;
  readonly values: readonly (string | Buffer | null)[];
  readonly engine: keyof typeof TRANSACTION_SETTINGS;
  readonly settings: readonly string[];
}

export class PoolerQuery extends Query {
  readonly #engine: PoolerStatement["engine"];
  readonly #settings: readonly string[];
  #areSet = false;

  constructor(
    { text, values, engine, settings }: PoolerStatement,
    settle: (error: Error | undefined, result: pg.QueryArrayResult | undefined) => void,
  ) {
    // Extended also where there are no values: a simple query would leave the settings out.
    super({ text, values, rowMode: "array", queryMode: "extended" }, undefined, settle);
    this.#engine = engine;
    this.#settings = settings;
  }

  override prepare(connection: Wire): void {
    connection.parse({ text: TRANSACTION_SETTINGS[this.#engine], name: "" });
    connection.bind({ values: this.#settings });
    connection.execute({});
    super.prepare(connection);
  }

  override handleDataRow(message: unknown): void {
    if (this.#areSet) super.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, connection: Wire): void {
    if (this.#areSet) super.handleCommandComplete(message, connection);
    this.#areSet = true;
  }
}

/** Throws where a pooler may give each statement of a transaction another connection. */
export async function demandTransactions(client: pg.Client): Promise<void> {
  try {
    await client.query("begin");
    await client.query("commit");
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    const supported = "poolers in session or transaction mode are supported, statement mode is not";
    throw Object.assign(new pg.DatabaseError(`${supported}: ${error.message}`, error.length, "error"), { code: error.code, cause: error });
  }
}

// One connection that writes. It opens itself when needed, runs one statement at a time under the
// gateway's own timer, and says of every failure whether something may have been applied. It never
// retries, and never reuses a session whose state is in doubt.
import pg from "pg";
import { connectFailure, endsSession, type Failure, failureOf } from "../fence/failure.js";
import type { EngineWatch } from "./engine.js";
import { demandTransactions, PoolerQuery } from "./pooler-query.js";
import {
  BEGIN,
  type BoundStatement,
  beginOnWorkers,
  COMMIT,
  type Durability,
  inTransaction,
  leavesDoubt,
  OPEN_CITUS_SESSION,
  OPEN_SESSION,
  type Reply,
  type Row,
  type SessionLimits,
  type SessionReport,
  sessionFault,
  sessionParameters,
  sessionReport,
  TRANSACTION_SETTINGS,
  unnamed,
  type Work,
} from "./session.js";
import { type ServerProcess, tracing } from "./spans.js";

export type { BoundStatement, Reply, Row };

/** Whether the database was restored; see lineage.ts. */
interface RestoreCheck {
  readonly least: number;
  fault(query: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>): Promise<string | undefined>;
  refresh(): Promise<string | undefined>;
}

export interface WriteConnectionOptions extends SessionLimits {
  readonly databaseUrl: string;
  readonly durability: Durability;
  readonly connectTimeoutMs: number;
  readonly engine: Pick<EngineWatch, "known" | "plain" | "fault">;
  /** Absent: whether the database was restored is not asked. */
  readonly lineage?: RestoreCheck | undefined;
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
    return this.#traced(statement.name, (client) => this.#sendIfWhole(client, statement));
  }

  /** Several statements as one transaction, under this name. */
  transaction(name: string, work: Work): Promise<Reply> {
    return this.#traced(name, async (client) => {
      const lost = this.#isPooled ? await this.#options.lineage?.refresh() : undefined;
      if (lost !== undefined) return { failure: notRecovered(lost) };
      const send = (statement: BoundStatement) => this.#send(client, statement, "within");
      return await inTransaction({ send, begin: this.#begin(), commit: COMMIT[this.#engine], lose: () => this.destroy() }, work);
    });
  }

  /** On a pooler's connection the transaction brings its settings with it. */
  #begin(): BoundStatement[] {
    const [begin, settings] =
      this.#engine === "citus"
        ? [beginOnWorkers(this.#options, this.#appliesRemotely), unnamed("select palisade.demand_beat($1)", this.#leastBeat)]
        : [BEGIN, unnamed(TRANSACTION_SETTINGS.plain, this.#transactionParameters())];
    return this.#isPooled ? [unnamed(begin), settings] : [unnamed(begin)];
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
    const { databaseUrl, connectTimeoutMs, durability } = this.#options;
    let client: pg.Client | undefined;
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
      const { processID } = client as unknown as { readonly processID: number | null };
      const values = [...sessionParameters(this.#options), processID];
      const setUp = { text: OPEN_SESSION, values, query_timeout: connectTimeoutMs };
      const { rows } = await client.query<Record<string, unknown>>(setUp);
      const report = sessionReport(rows[0] ?? {});
      const fault = sessionFault(report, durability);
      if (fault !== undefined) {
        discard(client);
        return { kind: "unavailable", reason: fault.reason, error: new Error(fault.message) };
      }
      const query = async (text: string) => (await (client as pg.Client).query<Record<string, unknown>>(text)).rows;
      const lost = await this.#options.lineage?.fault(query);
      if (lost !== undefined) {
        discard(client);
        return notRecovered(lost);
      }
      const other = await this.#demandEngine(report, query);
      if (other !== undefined) {
        discard(client);
        return { kind: "unavailable", reason: "refused", error: new Error(other) };
      }
      if (report.isPooled) await demandTransactions(client);
      this.#isPooled = report.isPooled;
      this.#appliesRemotely = report.appliesRemotely;
      this.#client = client;
      return client;
    } catch (error) {
      if (client !== undefined) discard(client);
      return connectFailure(asError(error));
    } finally {
      this.#opening = undefined;
    }
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

  /** Behind a pooler no new connection tells of a server that was replaced. */
  async #sendIfWhole(client: pg.Client, statement: BoundStatement): Promise<Reply> {
    const lost = this.#isPooled ? await this.#options.lineage?.refresh() : undefined;
    return lost === undefined ? await this.#send(client, statement) : { failure: notRecovered(lost) };
  }

  #transactionParameters(): string[] {
    return [...sessionParameters(this.#options), ...this.#leastBeat];
  }

  get #leastBeat(): [string] {
    return [String(this.#options.lineage?.least ?? 0)];
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

  #send(client: pg.Client, { name, text, values }: BoundStatement, place: "alone" | "within" = "alone"): Promise<Reply> {
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
        else if (error) resolve({ failure: failureOf(error) });
        else resolve({ rows: result?.rows ?? [] });
      };
      if (this.#isPooled && place === "alone")
        client.query(new PoolerQuery({ text, values, engine: this.#engine, settings: this.#transactionParameters() }, settle) as never);
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

function notRecovered(lost: string): Failure {
  return { kind: "unavailable", reason: "not_recovered", error: new Error(`this database may lack fences: ${lost}`) };
}

/** pg would send Terminate and wait; destroying the socket ends it at once. */
function discard(client: pg.Client): void {
  (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream.destroy();
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

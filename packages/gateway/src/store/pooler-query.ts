// One statement behind a connection pooler. In transaction mode each transaction may run on another
// connection to Postgres, so the settings travel with the statement: two statements before one
// Sync are one transaction, and settings made for the transaction hold until it ends. Prepared
// statements stay without a name, because the connection on which they were prepared is not the
// next one.
import pg from "pg";
import { TRANSACTION_SETTINGS } from "./session.js";

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

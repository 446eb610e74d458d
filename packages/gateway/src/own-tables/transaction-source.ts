// Opens, commits and rolls back a transaction with whichever library the user has: each library's
// own function where there is one, BEGIN and COMMIT on a client of pg.
import { serverErrorOf } from "./server-error.js";
import { has, type OpenTransaction } from "./statement.js";

export interface PgPool<Tx> {
  connect(): Promise<Tx & { release(destroy?: boolean): void }>;
  readonly totalCount: number;
}
/** A client of pg without an open transaction. */
export interface PgClient {
  query(text: string): Promise<unknown>;
}
/** drizzle, Knex, TypeORM. */
export interface TransactionMethod<Tx> {
  transaction(work: (tx: Tx) => Promise<unknown>): PromiseLike<unknown>;
}
/** postgres.js. */
export interface BeginMethod<Tx> {
  begin(work: (tx: Tx) => Promise<unknown>): PromiseLike<unknown>;
}
export interface PrismaMethod<Tx> {
  $transaction(work: (tx: Tx) => Promise<unknown>): PromiseLike<unknown>;
}
export type TransactionSource<Tx> = PgPool<Tx> | (PgClient & Tx) | TransactionMethod<Tx> | BeginMethod<Tx> | PrismaMethod<Tx>;

/** COMMIT was sent when `work` had returned; a rejection after that is about COMMIT. */
export async function inTransaction<Tx extends OpenTransaction>(
  db: TransactionSource<Tx>,
  work: (tx: Tx) => Promise<unknown>,
): Promise<void> {
  checkSource(db);
  if (has(db, "$transaction")) await (db as PrismaMethod<Tx>).$transaction(work);
  else if (has(db, "begin")) await (db as BeginMethod<Tx>).begin(work);
  else if (has(db, "transaction")) await (db as TransactionMethod<Tx>).transaction(work);
  else {
    const { failure } = await ("totalCount" in db ? onPool(db, work) : onClient(db as PgClient & Tx, work));
    if (failure !== undefined) throw failure.error;
  }
}

const ALREADY_OPEN = "withFencedTransaction opens the transaction itself: inside an open one, call guard";

/** In an open transaction, the end of `work` would not be its end: nothing would be committed. */
function checkSource(db: unknown): void {
  const seen = db as { readonly queryRunner?: { readonly isTransactionActive?: boolean }; readonly isTransaction?: boolean };
  const isOpen =
    has(db, "rollback") ||
    has(db, "savepoint") ||
    (has(db, "$transaction") && !has(db, "$connect")) ||
    seen.isTransaction === true ||
    seen.queryRunner?.isTransactionActive === true;
  if (isOpen) throw new TypeError(ALREADY_OPEN);
  if (!["$transaction", "begin", "transaction", "connect", "query"].some((name) => has(db, name)))
    throw new TypeError("withFencedTransaction needs a database of pg, postgres.js, drizzle, Knex, TypeORM or Prisma");
}

/** The failure is wrapped, because undefined can be thrown. */
export interface Ended {
  readonly failure?: { readonly error: unknown };
  /** Whether the connection is known to be outside of a transaction. */
  readonly reusable: boolean;
}

type ErrorEvents = (event: "error", listener: () => void) => unknown;

/** `settings` are statements for the transaction, each with its semicolon; they go with BEGIN. */
export async function onPool<Tx extends OpenTransaction>(
  pool: PgPool<Tx>,
  work: (tx: Tx) => Promise<unknown>,
  settings = "",
): Promise<Ended> {
  const client = await pool.connect();
  // The pool listens to idle clients only, and an error without a listener ends the process. A lost
  // connection also rejects the statement that waits on it.
  const events = client as { readonly on?: ErrorEvents; readonly off?: ErrorEvents };
  const ignore = (): void => undefined;
  events.on?.("error", ignore);
  const ended = await onClient(client as unknown as PgClient & Tx, work, settings);
  // A client that is thrown away may still report how its connection ended.
  if (ended.reusable) events.off?.("error", ignore);
  client.release(!ended.reusable);
  return ended;
}

async function onClient<Tx extends OpenTransaction>(
  client: PgClient & Tx,
  work: (tx: Tx) => Promise<unknown>,
  settings = "",
): Promise<Ended> {
  try {
    await begin(client, settings);
  } catch (error) {
    return { failure: { error }, reusable: false };
  }
  try {
    await work(client);
  } catch (error) {
    return { failure: { error }, reusable: await rolledBack(client) };
  }
  try {
    await client.query("commit");
    return { reusable: true };
  } catch (error) {
    return { failure: { error }, reusable: serverErrorOf(error) !== undefined };
  }
}

/**
 * BEGIN inside an open transaction is only a warning. What is sent together has one statement time,
 * and a transaction begins with the statement time of its first statement.
 */
async function begin(client: PgClient, settings: string): Promise<void> {
  const answer = await client.query(`begin; ${settings} select transaction_timestamp() = statement_timestamp() as fresh`);
  const last = (Array.isArray(answer) ? answer.at(-1) : answer) as { readonly rows: readonly { readonly fresh: boolean }[] };
  if (last.rows[0]?.fresh !== true) throw new TypeError(ALREADY_OPEN);
}

const ROLLBACK_WITHIN_MS = 1_000;

/**
 * A rollback that fails, or waits behind a statement without an answer, must not stand in the way
 * of the error that led to it. The pool then ends the connection, and with it the transaction.
 */
async function rolledBack(client: PgClient): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ROLLBACK_WITHIN_MS);
  });
  const done = client.query("rollback").then(
    () => true,
    () => false,
  );
  const result = await Promise.race([done, late]);
  clearTimeout(timer);
  return result;
}

// Opens, commits and rolls back a transaction with whichever library the user has: each library's
// own function where there is one, BEGIN and COMMIT on a client of pg. Not with postgres.js: what
// its transaction is sent after the connection was lost goes to the next connection of the pool,
// into whatever transaction is open there, and nothing public of 3.4 can prevent that.
import { execute, has, type OpenTransaction } from "./statement.js";

/** A pool of pg. */
export interface PgPool<Tx> {
  /** Takes a client out of the pool. */
  connect(): Promise<Tx & { release(destroy?: boolean): void }>;
  /** By which a pool is told from a client. */
  readonly totalCount: number;
}
/** A client of pg without an open transaction. */
export interface PgClient {
  /** Sends plain SQL. */
  query(text: string): Promise<unknown>;
}
/** drizzle, Knex, TypeORM. */
export interface TransactionMethod<Tx> {
  /** Runs the work in a transaction. */
  transaction(work: (tx: Tx) => Promise<unknown>): PromiseLike<unknown>;
}
/** Prisma. */
export interface PrismaMethod<Tx> {
  /** Runs the work in a transaction. */
  $transaction(work: (tx: Tx) => Promise<unknown>): PromiseLike<unknown>;
}
/** What withFencedTransaction takes: a database of pg, drizzle, Knex, TypeORM or Prisma. */
export type TransactionSource<Tx> = PgPool<Tx> | (PgClient & Tx) | TransactionMethod<Tx> | PrismaMethod<Tx>;

/** What a transaction consists of besides BEGIN and COMMIT. */
interface TransactionParts<Tx> {
  /** Makes the guards, which come first. */
  readonly first: (tx: Tx) => Promise<Guards>;
  readonly work: (tx: Tx) => Promise<unknown>;
  /** The last statement where the library sends COMMIT: it fails when there must be none. */
  readonly last: string;
}

interface Guards {
  /** Statements for a transaction that a library has opened. */
  readonly text: string;
  /** The calls alone, as expressions, for a transaction that is opened here. */
  readonly calls: readonly string[];
}

/** Where a transaction failed. `commit` includes `last` where both are sent together. */
export interface TransactionFailure {
  readonly stage: "begin" | "first" | "work" | "last" | "commit";
  readonly error: unknown;
}

/** Undefined when it was committed. */
export async function inTransaction<Tx extends OpenTransaction>(
  db: TransactionSource<Tx>,
  parts: TransactionParts<Tx>,
): Promise<TransactionFailure | undefined> {
  checkSource(db);
  if (has(db, "$transaction")) return await inLibrary((work) => (db as PrismaMethod<Tx>).$transaction(work), parts);
  if (has(db, "transaction")) return await inLibrary((work) => (db as TransactionMethod<Tx>).transaction(work), parts);
  const { failure } = await ("totalCount" in db ? onPool(db, parts) : onClient(db as PgClient & Tx, parts));
  return failure;
}

/** The library sends BEGIN, COMMIT and ROLLBACK. */
async function inLibrary<Tx extends OpenTransaction>(
  run: (work: (tx: Tx) => Promise<void>) => PromiseLike<unknown>,
  { first, work, last }: TransactionParts<Tx>,
): Promise<TransactionFailure | undefined> {
  let stage: TransactionFailure["stage"] = "begin";
  let failure: TransactionFailure | undefined;
  try {
    await run(async (tx) => {
      try {
        stage = "first";
        await execute(tx, (await first(tx)).text);
        stage = "work";
        await work(tx);
        stage = "last";
        await execute(tx, last);
        stage = "commit";
      } catch (error) {
        failure = { stage, error };
        throw error;
      }
    });
    return undefined;
  } catch (error) {
    // A rollback that failed as well must not hide why it was sent.
    return failure ?? { stage, error };
  }
}

const ALREADY_OPEN = "withFencedTransaction opens the transaction itself: inside an open one, call guard";
const POSTGRES_JS =
  "withFencedTransaction opens no transaction of postgres.js, which may outlive its connection: write sql.begin(async (tx) => { await guard(tx, lease); … }) in its place";

/**
 * In an open transaction, the end of `work` would not be its end: nothing would be committed.
 * drizzle keeps what it was given as `$client`.
 */
function checkSource(db: unknown): void {
  const seen = db as {
    readonly queryRunner?: { readonly isTransactionActive?: boolean };
    readonly isTransaction?: boolean;
    readonly $client?: unknown;
  };
  const isOpen =
    has(db, "rollback") ||
    has(db, "savepoint") ||
    (has(db, "$transaction") && !has(db, "$connect")) ||
    seen.isTransaction === true ||
    seen.queryRunner?.isTransactionActive === true;
  if (isOpen) throw new TypeError(ALREADY_OPEN);
  if ([db, seen.$client].some((client) => has(client, "unsafe"))) throw new TypeError(POSTGRES_JS);
  if (!["$transaction", "transaction", "connect", "query"].some((name) => has(db, name)))
    throw new TypeError("withFencedTransaction needs a database of pg, drizzle, Knex, TypeORM or Prisma");
}

interface Ended {
  readonly failure?: TransactionFailure;
  /** Whether the connection is known to be outside of a transaction. */
  readonly reusable: boolean;
}

type ErrorEvents = (event: "error", listener: () => void) => unknown;

async function onPool<Tx extends OpenTransaction>(pool: PgPool<Tx>, parts: TransactionParts<Tx>): Promise<Ended> {
  const client = await pool.connect();
  // The pool listens to idle clients only, and an error without a listener ends the process. A lost
  // connection also rejects the statement that waits on it.
  const events = client as { readonly on?: ErrorEvents; readonly off?: ErrorEvents };
  const ignore = (): void => undefined;
  events.on?.("error", ignore);
  const ended = await onClient(client as unknown as PgClient & Tx, parts);
  // A client that is thrown away may still report how its connection ended.
  if (ended.reusable) events.off?.("error", ignore);
  client.release(!ended.reusable);
  return ended;
}

/**
 * What comes first goes with BEGIN, and what comes last with COMMIT: no further round trip. One
 * statement in each, because each costs Postgres as much as a tenth of the whole transaction.
 */
async function onClient<Tx extends OpenTransaction>(client: PgClient & Tx, { first, work }: TransactionParts<Tx>): Promise<Ended> {
  let stage: TransactionFailure["stage"] = "begin";
  try {
    const { calls } = await first(client);
    stage = "first";
    const number = numberOf(await client.query(`begin; ${guardsOfFresh(calls)}`));
    if (number === undefined) return { failure: { stage, error: new TypeError(ALREADY_OPEN) }, reusable: true };
    stage = "work";
    await work(client);
    stage = "commit";
    // Fails if the work has ended the transaction, because then this is none or another one.
    await client.query(
      `select case pg_catalog.pg_current_xact_id_if_assigned()::text when '${number}' then '' else palisade.refuse_all() end; commit`,
    );
    return { reusable: true };
  } catch (error) {
    return { failure: { stage, error }, reusable: stage !== "begin" && (await rolledBack(client)) };
  }
}

/**
 * BEGIN inside an open transaction is only a warning. What is sent together has one statement time,
 * and a transaction begins with the statement time of its first statement. In an open one no guard
 * is called. The guards gave the transaction its number.
 */
function guardsOfFresh(calls: readonly string[]): string {
  const guards = calls.map((call) => `when ${call} is null then null`).join(" ");
  return `select case when transaction_timestamp() <> statement_timestamp() then null ${guards}
    else pg_catalog.pg_current_xact_id_if_assigned()::text end as number`;
}

function numberOf(answers: unknown): string | undefined {
  const answer = (answers as readonly { readonly rows: readonly { readonly number: string | null }[] }[]).at(-1);
  return answer?.rows[0]?.number ?? undefined;
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

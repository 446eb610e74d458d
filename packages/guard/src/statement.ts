// Sends a statement inside the user's transaction, whichever driver opened it. A driver is known by
// the method that sends plain SQL, never by a class: the user's tree may hold another copy of it.
// Everything is sent without parameters, because only Postgres's simple protocol takes several
// statements in one round trip.

/** pg, TypeORM, and anything else wrapped as `{ query: (text) => … }`. */
export interface PgTransaction {
  /** Sends plain SQL. */
  query(text: string): PromiseLike<unknown>;
}
/** What drizzle passes to the callback of `db.transaction`, over pg or postgres.js. */
export interface DrizzleTransaction {
  /** Sends plain SQL. */
  execute(query: string): PromiseLike<unknown>;
}
/** What postgres.js passes to the callback of `sql.begin`. */
export interface PostgresJsTransaction {
  /** Sends plain SQL. */
  unsafe(text: string): PromiseLike<unknown>;
}
/** What Knex passes to the callback of `knex.transaction`. */
export interface KnexTransaction {
  /** Sends plain SQL. */
  raw(text: string): PromiseLike<unknown>;
}
/** What Prisma passes to the callback of `prisma.$transaction`. */
export interface PrismaTransaction {
  /** Sends plain SQL whose rows are not read. */
  $executeRawUnsafe(text: string): PromiseLike<unknown>;
  /** Sends plain SQL and reads its rows. */
  $queryRawUnsafe(text: string): PromiseLike<unknown>;
}
/** What the guard takes: whatever the library hands out inside of a transaction. */
export type OpenTransaction = PgTransaction | DrizzleTransaction | PostgresJsTransaction | KnexTransaction | PrismaTransaction;

/** One or more statements, whose results are not needed. */
export function execute(tx: OpenTransaction, text: string): PromiseLike<unknown> {
  // Prisma's $queryRawUnsafe reads the columns of one result and fails on several.
  return has(tx, "$executeRawUnsafe") ? tx.$executeRawUnsafe(text) : send(tx, text);
}

/** The value in the column `value` of the only row of one statement. */
export async function readValue(tx: OpenTransaction, text: string): Promise<unknown> {
  const [row] = await readRows<{ readonly value: unknown }>(tx, text);
  return row?.value;
}

export async function readRows<Row>(tx: OpenTransaction, text: string): Promise<readonly Row[]> {
  const answer = (await send(tx, text)) as readonly Row[] | { readonly rows: readonly Row[] };
  return "rows" in answer ? answer.rows : answer;
}

function send(tx: OpenTransaction, text: string): PromiseLike<unknown> {
  if (has(tx, "$queryRawUnsafe")) return tx.$queryRawUnsafe(text);
  if (has(tx, "unsafe")) return tx.unsafe(text);
  if (has(tx, "execute")) return tx.execute(text);
  if (has(tx, "raw")) return tx.raw(text);
  if (has(tx, "query")) return tx.query(text);
  throw new TypeError(
    "this is no transaction of pg, postgres.js, drizzle, Knex, TypeORM or Prisma: pass { query: (text) => … } for another",
  );
}

/** Whether the value, an object or a function, has a method of this name. */
export function has<Name extends string>(value: unknown, name: Name): value is { readonly [N in Name]: (...args: never[]) => unknown } {
  const holder = value as Readonly<Record<string, unknown>> | null | undefined;
  return typeof holder?.[name] === "function";
}

/**
 * A text as a literal that no session setting reads differently and no driver takes for a
 * placeholder. Whatever is not harmless ASCII is written as an escape, so neither
 * standard_conforming_strings nor client_encoding plays a part.
 */
export function literal(text: string | undefined): string {
  if (text === undefined) return "null";
  const escaped = text.replace(/[^\w./@ -]/gu, (character) => `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`);
  return `E'${escaped}'`;
}

// Every driver and library that the guard is documented for, behind one face: a database, and a
// transaction opened by the library itself. Prisma runs without its generated client: the runtime
// that every generated client is made of, with an empty schema, over its driver adapter.
import { PrismaPg } from "@prisma/adapter-pg";
import { getPrismaClient } from "@prisma/client/runtime/client";
import { drizzle as drizzleOverPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOverPostgresJs } from "drizzle-orm/postgres-js";
import knex, { type Knex } from "knex";
import pg from "pg";
import secondCopy from "pg-second-copy";
import postgres from "postgres";
import { DataSource, type EntityManager } from "typeorm";
import { type FencedLease, withFencedTransaction } from "../../src/fenced-transaction.js";
import type { OpenTransaction } from "../../src/statement.js";

export type Work = (tx: OpenTransaction) => Promise<void>;

type Fenced = (leases: FencedLease | readonly FencedLease[], work: Work) => Promise<void>;

export interface OpenDriver {
  /** The database itself, which is no transaction. */
  readonly outside: OpenTransaction;
  readonly transaction: (work: Work) => PromiseLike<unknown>;
  readonly fenced: Fenced;
  readonly close: () => Promise<unknown>;
}

export interface Driver {
  readonly name: string;
  readonly open: (url: string, connections: number) => OpenDriver | Promise<OpenDriver>;
}

const ignore = (): void => undefined;

/**
 * A test may cut a connection; the statement on it reports that. drizzle leaves the error event of
 * a client that it has taken out of the pool without a listener.
 */
function quiet(pool: pg.Pool): pg.Pool {
  return pool.on("error", ignore).on("connect", (client) => void client.on("error", ignore));
}

function overPool(pool: pg.Pool): OpenDriver {
  const transaction = async (work: Work): Promise<void> => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      await work(client);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  };
  const fenced: Fenced = (leases, work) => withFencedTransaction(pool, leases, (tx: pg.PoolClient) => work(tx));
  return { outside: pool, transaction, fenced, close: () => pool.end() };
}

/** The types of Node 20 do not have it. */
const { WebAssembly: webAssembly } = globalThis as unknown as {
  readonly WebAssembly: { readonly Module: new (bytes: Buffer) => unknown };
};
const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql";
const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: "7.10.0",
  engineVersion: "7.10.0",
  activeProvider: "postgresql",
  inlineSchema: 'generator client {\n provider = "prisma-client"\n output = "."\n}\ndatasource db {\n provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: Buffer.alloc(64).toString("base64") },
  compilerWasm: {
    getRuntime: () => import(`${compiler}.mjs`),
    getQueryCompilerWasmModule: async () => {
      const { wasm } = (await import(`${compiler}.wasm-base64.mjs`)) as { readonly wasm: string };
      return new webAssembly.Module(Buffer.from(wasm, "base64"));
    },
    importName: "./query_compiler_fast_bg.js",
  },
});

const libraries: Readonly<Record<string, Driver["open"]>> = {
  // A client that is taken out of this pool has no listener but the guard's.
  pg: (connectionString, max) => overPool(new pg.Pool({ connectionString, max }).on("error", ignore)),
  "a second copy of pg": (connectionString, max) => overPool(quiet(new secondCopy.Pool({ connectionString, max }) as unknown as pg.Pool)),
  "drizzle over pg": (connectionString, max) => {
    const clients = new Set<pg.PoolClient>();
    const pool = quiet(new pg.Pool({ connectionString, max })).on("connect", (client) => clients.add(client));
    const db = drizzleOverPg(pool);
    const fenced: Fenced = (leases, work) => withFencedTransaction(db, leases, (tx) => work(tx));
    // drizzle keeps a client whose BEGIN failed, and the pool would wait for it.
    const close = () => Promise.all([...clients].map((client) => (client as unknown as pg.Client).end()));
    return { outside: db, transaction: (work) => db.transaction(work), fenced, close };
  },
  "postgres.js": (url, max) => {
    const sql = postgres(url, { max, onnotice: ignore });
    const fenced: Fenced = (leases, work) => withFencedTransaction(sql as never, leases, work);
    return { outside: sql, transaction: (work) => sql.begin(work), fenced, close: () => sql.end({ timeout: 0 }) };
  },
  "drizzle over postgres.js": (url, max) => {
    const sql = postgres(url, { max, onnotice: ignore });
    const db = drizzleOverPostgresJs(sql);
    const fenced: Fenced = (leases, work) => withFencedTransaction(db, leases, (tx) => work(tx));
    return { outside: db, transaction: (work) => db.transaction(work), fenced, close: () => sql.end({ timeout: 0 }) };
  },
  Knex: (connection, max) => {
    const db = knex({ client: "pg", connection, pool: { min: 0, max }, log: { warn: ignore, error: ignore } });
    const fenced: Fenced = (leases, work) => withFencedTransaction(db, leases, (trx: Knex.Transaction) => work(trx));
    return { outside: db, transaction: (work) => db.transaction(work), fenced, close: () => db.destroy() };
  },
  TypeORM: async (url, poolSize) => {
    const source = await new DataSource({ type: "postgres", url, poolSize, poolErrorHandler: ignore }).initialize();
    const fenced: Fenced = (leases, work) => withFencedTransaction(source, leases, (manager: EntityManager) => work(manager));
    return { outside: source, transaction: (work) => source.transaction(work), fenced, close: () => source.destroy() };
  },
  Prisma: (connectionString, max) => {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max }, { onPoolError: ignore }) });
    const transaction = (work: Work) => prisma.$transaction(work, { timeout: 60_000 });
    type Tx = Pick<typeof prisma, "$executeRawUnsafe" | "$queryRawUnsafe">;
    const fenced: Fenced = (leases, work) => withFencedTransaction(prisma, leases, (tx: Tx) => work(tx));
    return { outside: prisma, transaction, fenced, close: () => prisma.$disconnect() };
  },
};

export const drivers: readonly Driver[] = Object.entries(libraries).map(([name, open]) => ({ name, open }));

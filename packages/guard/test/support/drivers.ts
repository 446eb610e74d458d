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

export interface OpenDriver {
  /** The database itself, which is no transaction. */
  readonly outside: OpenTransaction;
  readonly transaction: (work: Work) => Promise<unknown>;
  readonly fenced: (leases: FencedLease | readonly FencedLease[], work: Work) => Promise<void>;
  readonly close: () => Promise<unknown>;
}

export interface Driver {
  readonly name: string;
  readonly open: (url: string, connections: number) => Promise<OpenDriver>;
}

/** What the guard needs of a pool, whichever copy of pg it is of. */
interface Pool {
  connect(): Promise<pg.PoolClient>;
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
  readonly totalCount: number;
}

function pgDriver(pool: Pool): OpenDriver {
  return {
    outside: pool,
    transaction: async (work) => {
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
    },
    fenced: (leases, work) => withFencedTransaction(pool, leases, (tx: pg.PoolClient) => work(tx)),
    close: () => pool.end(),
  };
}

async function drizzlePgDriver(url: string, connections: number): Promise<OpenDriver> {
  const pool = quiet(new pg.Pool({ connectionString: url, max: connections }));
  const db = drizzleOverPg(pool);
  return {
    outside: db,
    transaction: (work) => db.transaction((tx) => work(tx)),
    fenced: (leases, work) => withFencedTransaction(db, leases, (tx) => work(tx)),
    close: () => pool.end(),
  };
}

async function postgresJsDriver(url: string, connections: number): Promise<OpenDriver> {
  const sql = postgres(url, { max: connections, onnotice: () => undefined });
  return {
    outside: sql,
    transaction: (work) => sql.begin((tx) => work(tx)),
    fenced: (leases, work) => withFencedTransaction(sql as never, leases, work),
    close: () => sql.end({ timeout: 0 }),
  };
}

async function drizzlePostgresJsDriver(url: string, connections: number): Promise<OpenDriver> {
  const sql = postgres(url, { max: connections, onnotice: () => undefined });
  const db = drizzleOverPostgresJs(sql);
  return {
    outside: db,
    transaction: (work) => db.transaction((tx) => work(tx)),
    fenced: (leases, work) => withFencedTransaction(db, leases, (tx) => work(tx)),
    close: () => sql.end({ timeout: 0 }),
  };
}

async function knexDriver(url: string, connections: number): Promise<OpenDriver> {
  const db = knex({
    client: "pg",
    connection: url,
    pool: { min: 0, max: connections },
    log: { warn: () => undefined, error: () => undefined },
  });
  return {
    outside: db,
    transaction: (work) => db.transaction((trx) => work(trx)),
    fenced: (leases, work) => withFencedTransaction(db, leases, (trx: Knex.Transaction) => work(trx)),
    close: () => db.destroy(),
  };
}

async function typeOrmDriver(url: string, connections: number): Promise<OpenDriver> {
  const source = await new DataSource({ type: "postgres", url, poolSize: connections, poolErrorHandler: () => undefined }).initialize();
  return {
    outside: source,
    transaction: (work) => source.transaction((manager) => work(manager)),
    fenced: (leases, work) => withFencedTransaction(source, leases, (manager: EntityManager) => work(manager)),
    close: () => source.destroy(),
  };
}

async function prismaDriver(url: string, connections: number): Promise<OpenDriver> {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: connections }, { onPoolError: () => undefined }) });
  return {
    outside: prisma,
    transaction: (work) => prisma.$transaction((tx: PrismaTx) => work(tx), { timeout: 60_000 }),
    fenced: (leases, work) => withFencedTransaction(prisma, leases, (tx: PrismaTx) => work(tx)),
    close: () => prisma.$disconnect(),
  };
}

/** The types of Node 20 do not have it. */
const { WebAssembly: webAssembly } = globalThis as unknown as {
  readonly WebAssembly: { readonly Module: new (bytes: Buffer) => unknown };
};
type PrismaTx = Pick<InstanceType<typeof PrismaClient>, "$executeRawUnsafe" | "$queryRawUnsafe">;
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

/**
 * A test may cut a connection; the statement on it reports that. drizzle leaves the error event of
 * a client that it has taken out of the pool without a listener.
 */
function quiet(pool: pg.Pool): pg.Pool {
  return pool.on("error", () => undefined).on("connect", (client) => void client.on("error", () => undefined));
}

export const drivers: readonly Driver[] = [
  {
    name: "pg",
    open: async (url, connections) => pgDriver(new pg.Pool({ connectionString: url, max: connections }).on("error", () => undefined)),
  },
  {
    name: "a second copy of pg",
    open: async (url, connections) =>
      pgDriver(quiet(new secondCopy.Pool({ connectionString: url, max: connections }) as unknown as pg.Pool)),
  },
  { name: "drizzle over pg", open: drizzlePgDriver },
  { name: "postgres.js", open: postgresJsDriver },
  { name: "drizzle over postgres.js", open: drizzlePostgresJsDriver },
  { name: "Knex", open: knexDriver },
  { name: "TypeORM", open: typeOrmDriver },
  { name: "Prisma", open: prismaDriver },
];

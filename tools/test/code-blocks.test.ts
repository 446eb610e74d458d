// The TypeScript of the documents, and the programs of examples/, compile strictly against the
// packages. What a page takes for granted, such as the locker of its first lines, is declared here.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const gateway = 'import type { GatewayClient } from "@palisade/client"; declare const client: GatewayClient;';
const postgres = 'import type { PoolClient } from "pg"; declare const client: PoolClient;';

/** On every page; a block may declare its own. */
const everywhere = `import type { Lease, Locker } from "@palisade/lock"; import type { Pool } from "pg";
  declare global { const locker: Locker; const lease: Lease; const pool: Pool; }`;

/** Which no package of this workspace installs. */
const elsewhere = `declare module "@opentelemetry/sdk-node" { export class NodeSDK { start(): void } }
  declare module "bullmq" { export class Worker<T> {
    constructor(queue: string, work: (job: { data: T }) => Promise<void>, options: object);
    on(event: "error", listener: (error: Error) => void): this; close(): Promise<void>; } }
  declare module "pg-boss" { export default class PgBoss {
    constructor(options: { connectionString: string }); start(): Promise<this>; stop(): Promise<void>;
    on(event: "error", listener: (error: Error) => void): this; createQueue(name: string): Promise<void>;
    work<T>(queue: string, work: (jobs: { data: T }[]) => Promise<void>): Promise<string>; } }`;

/** By page, for all of its blocks or for one. */
const given: Readonly<Record<string, string>> = {
  "docs/own-tables.md": postgres,
  "docs/drivers.md 1": 'import type { PoolClient } from "pg";',
  "docs/drivers.md 2": `${postgres} import { guard } from "@palisade/guard";
    import type { NodePgDatabase } from "drizzle-orm/node-postgres"; declare const db: NodePgDatabase;
    import type { Sql } from "postgres"; declare const sql: Sql;
    import type { Knex } from "knex"; declare const knex: Knex;
    import type { DataSource } from "typeorm"; declare const dataSource: DataSource;
    import type { PrismaTransaction } from "@palisade/guard";
    declare const prisma: { $transaction<T>(work: (tx: PrismaTransaction) => Promise<T>): Promise<T> };
    declare const otherDriver: { run(text: string): Promise<unknown> };`,
  "docs/drivers.md 3": 'import type { Sql } from "postgres"; declare const sql: Sql; import { guard } from "@palisade/guard";',
  "docs/migrating.md": `${gateway} import type { Redis as Server } from "ioredis";
    declare const redisA: Server, redisB: Server, redisC: Server; declare const id: string; declare const order: object;
    declare function load(id: string): Promise<object>;`,
  "examples/README.md": `import type PgBoss from "pg-boss"; declare const boss: PgBoss; declare const connection: object;
    declare function makeReport(id: number | undefined, signal: AbortSignal): Promise<string>;`,
  "packages/lock/README.md": `declare function runDueJobs(token: number): Promise<void>;
    declare const document: unknown;
    declare const store: { write(name: string, value: unknown, options: { token: number; signal: AbortSignal }): Promise<void> };`,
  "packages/client/README.md": "interface Order { status: string } interface Account { balance: number }",
  "packages/gateway/README.md 2": gateway,
  "site/index.md": `declare const nodes: string[]; declare const url: string; declare const apiKey: string;
    interface Account { balance: number }`,
};

async function pages(): Promise<readonly string[]> {
  const found = await Promise.all(
    ["", "site", "docs", "docs/decisions", "spec", "examples", ...(await folders("packages"))].map(async (folder) =>
      (await readdir(join(root, folder))).filter((name) => name.endsWith(".md")).map((name) => join(folder, name)),
    ),
  );
  return found.flat();
}

async function folders(parent: string): Promise<readonly string[]> {
  const entries = await readdir(join(root, parent), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${parent}/${name}`);
}

/** Each block as a module, under a name that leads back to its page. */
async function blocks(): Promise<ReadonlyMap<string, string>> {
  const modules = new Map([
    ["everywhere.ts", everywhere],
    ["elsewhere.d.ts", elsewhere],
  ]);
  for (const page of await pages()) {
    const text = await readFile(join(root, page), "utf8");
    [...text.matchAll(/^```(ts|js|diff)(?: \[.*\])?\n([\s\S]*?)^```/gm)].forEach(([, kind, block = ""], index) => {
      const code = kind === "diff" ? block.replace(/^-.*\n/gm, "").replace(/^[ +]/gm, "") : block;
      const prelude = (given[page] ?? "") + (given[`${page} ${index + 1}`] ?? "");
      modules.set(`${page.replaceAll("/", "-")}-${index + 1}.ts`, `${prelude.replaceAll("\n", " ")}\n${code}\nexport {};\n`);
    });
  }
  return modules;
}

/** The declarations of all that a user may import, by the exports of the packages. */
async function published(): Promise<Record<string, [string]>> {
  const found: Record<string, [string]> = {};
  for (const folder of await folders("packages")) {
    const { name, exports } = JSON.parse(await readFile(join(root, folder, "package.json"), "utf8")) as {
      readonly name: string;
      readonly exports: Readonly<Record<string, { readonly types?: string }>>;
    };
    for (const [entry, { types }] of Object.entries(exports))
      if (types !== undefined) found[`${name}${entry.slice(1)}`] = [join(root, folder, types)];
  }
  return found;
}

/** Where it is given, a program of JavaScript that says its types in comments is compiled as well. */
async function compile(modules: ReadonlyMap<string, string>, programs: readonly string[] = []): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "palisade-blocks-"));
  try {
    for (const [name, code] of modules) await writeFile(join(folder, name), code);
    const drivers = join(root, "packages/guard/node_modules");
    const paths = {
      ...(await published()),
      ioredis: [join(root, "packages/lock/node_modules/ioredis")],
      pg: [join(drivers, "@types/pg")],
      express: [join(root, "packages/gateway/node_modules/@types/express")],
      "*": [join(drivers, "*")],
    };
    const compilerOptions = {
      module: "esnext",
      moduleResolution: "bundler",
      target: "es2022",
      lib: ["es2022", "esnext.disposable"],
      strict: true,
      noUncheckedIndexedAccess: true,
      exactOptionalPropertyTypes: true,
      allowJs: true,
      checkJs: true,
      skipLibCheck: true,
      noEmit: true,
      paths,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
    };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts", ...programs] }));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    return await promisify(execFile)(process.execPath, [tsc, "--pretty", "false", "-p", folder], { cwd: folder }).then(
      () => "",
      (error: { readonly stdout: string }) => error.stdout,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("every block of TypeScript in the documents compiles against the packages", async () => {
  const modules = await blocks();
  expect(modules.size).toBeGreaterThan(8);
  expect(await compile(modules)).toBe("");
});

test("every example compiles strictly", async () => {
  const files = await readdir(join(root, "examples"), { recursive: true });
  const programs = files.filter((file) => file.endsWith(".js") && !file.includes("node_modules"));
  expect(programs).toContain("pg-boss.js");
  expect(
    await compile(
      new Map([["elsewhere.d.ts", elsewhere]]),
      programs.map((file) => join(root, "examples", file)),
    ),
  ).toBe("");
});

test("a block that calls what a package does not have is found", async () => {
  const wrong = 'import { createLocker } from "@palisade/lock";\nawait createLocker({ nodes: [] }).aquire("orders/42");\nexport {};\n';
  expect(await compile(new Map([["page-1.ts", wrong]]))).toContain("page-1.ts(2");
});

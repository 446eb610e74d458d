// What a test may ask for by naming it: a namespace on the shared fleet, private fleets, a database of its file. Everything handed out is taken back.
// It must not hand out the means to break a shared server.
import { test as plain } from "vitest";
import { PostgresDatabases, type TestDatabase } from "../postgres/databases.js";
import { connectionsLeft } from "./leaks.js";
import { sharedServers } from "./shared-servers.js";

export interface SharedPostgres {
  /** The database "postgres" as superuser. */
  readonly url: string;
  readonly createDatabase: PostgresDatabases["createDatabase"];
  readonly template: PostgresDatabases["template"];
}

/** How the databases of a file begin: a copy of what `migrate` makes of an empty one. Equal names mean equal migrations, in every file. */
export interface DatabaseTemplate {
  readonly name: string;
  readonly migrate: (url: string) => Promise<unknown>;
}

export const test = plain
  /** The shared server, for tests that need more than one database. */
  .extend("postgres", { scope: "file" }, (): SharedPostgres => {
    const { postgresUrl: url } = sharedServers();
    const databases = new PostgresDatabases(url);
    return { url, createDatabase: databases.createDatabase.bind(databases), template: databases.template.bind(databases) };
  })
  /** Name a template for `database`: `test.extend("databaseTemplate", { scope: "file" }, { name, migrate })`. */
  .extend("databaseTemplate", { scope: "file" }, async (): Promise<DatabaseTemplate | undefined> => undefined)
  /** A fresh database for this file, dropped after it. */
  .extend("database", { scope: "file" }, async ({ postgres, databaseTemplate }, { onCleanup }): Promise<TestDatabase> => {
    if (databaseTemplate !== undefined) await postgres.template(databaseTemplate.name, databaseTemplate.migrate);
    const database = await postgres.createDatabase(databaseTemplate === undefined ? {} : { from: databaseTemplate.name });
    onCleanup(async () => {
      const leaked = await connectionsLeft(postgres.url, database.name);
      await database.drop();
      if (leaked.length > 0) throw new Error(`this file leaves connections to its database open:\n  ${leaked.join("\n  ")}`);
    });
    return database;
  });

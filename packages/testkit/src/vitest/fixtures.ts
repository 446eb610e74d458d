// What a test may ask for by naming it: a namespace on the shared fleet, private fleets, a database
// of its file. Everything handed out is taken back. A shared server is handed out without the means
// to break it.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { inject, test as plain } from "vitest";
import { PostgresDatabases, queryAt, type TestDatabase } from "../postgres/databases.js";
import { RedisFleet, type RedisFleetOptions } from "../redis/fleet.js";
import type { SharedServers } from "./global-setup.js";

/** What `migrate` makes of an empty database. Equal names mean equal migrations in every file. */
export interface DatabaseTemplate {
  readonly name: string;
  readonly migrate: (url: string) => Promise<unknown>;
}

/** Starts fleets of its own for a test, which may break them at will. They are stopped after it. */
export type StartFleet = (options?: Partial<RedisFleetOptions>) => Promise<RedisFleet>;

/** The shared fleet as one test sees it: the same nodes as every test's, and names of its own. */
export interface SharedRedis {
  readonly urls: readonly string[];
  readonly namespace: string;
}

/** The shared servers, or what to do about their absence. */
export function sharedServers(): SharedServers {
  const servers = inject("palisadeServers");
  if (servers === undefined)
    throw new Error("No shared servers: this file has to run in the vitest project whose globalSetup is the testkit's global-setup.ts");
  return servers;
}

export const test = plain
  .extend("redis", (): SharedRedis => ({ urls: sharedServers().redisUrls, namespace: `t${randomBytes(6).toString("hex")}` }))
  // vitest reads the names in the pattern as dependencies and refuses a fixture without a pattern.
  .extend("fleet", ({ task: _test }, { onCleanup }): StartFleet => {
    const started: Promise<RedisFleet>[] = [];
    onCleanup(async () => {
      const fleets = await Promise.allSettled(started); // A start that failed has told the test.
      await Promise.all(fleets.map((fleet) => (fleet.status === "fulfilled" ? fleet.value.stop() : undefined)));
    });
    return (options = {}) => {
      const fleet = RedisFleet.start({ nodes: 5, ...options });
      started.push(fleet);
      return fleet;
    };
  })
  /** The shared server, for tests that need more than one database. */
  .extend("postgres", { scope: "file" }, () => new PostgresDatabases(sharedServers().postgresUrl, sharedServers().workers))
  /** For `database`: `test.extend("databaseTemplate", { scope: "file" }, { name, migrate })`. */
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

// A session that has been told to end needs a moment, which is counted in looks and not by a clock.
const LOOKS = 400;
const POLL_MS = 5;

/**
 * The client sessions of a database that do not end by themselves, of any process. Those that the
 * servers of a Citus cluster keep to each other end with it.
 */
async function connectionsLeft(adminUrl: string, database: string): Promise<string[]> {
  const sessions = `select pid, application_name, state, left(query, 100) as query from pg_stat_activity
    where datname = $1 and backend_type = 'client backend' and application_name not like 'citus_internal%'`;
  for (let look = 1; ; look += 1) {
    const rows = await queryAt(adminUrl, sessions, [database]);
    if (rows.length === 0 || look === LOOKS) return rows.map((row) => JSON.stringify(row));
    await sleep(POLL_MS);
  }
}

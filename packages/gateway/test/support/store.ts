// Stores and plain connections for a test, over the database of its file. All are closed again.
import type { TestDatabase } from "@palisade/testkit";
import { test as base } from "@palisade/testkit/vitest";
import pg from "pg";
import type { FencedStore } from "../../src/fenced-store.js";
import { openStore, type StoreConfig } from "../../src/postgres-store.js";
import { longTimeouts } from "./long-timeouts.js";
import { gatewayTemplate, isOnCitus } from "./template.js";

export { describe, expect, vi } from "@palisade/testkit/vitest";
export { uniqueName } from "./unique-name.js";

export type OpenStore = (config?: Partial<StoreConfig>) => Promise<FencedStore>;
/** A connection of the test; one per call. */
export type Connect = () => Promise<pg.Client>;

export const test = base
  .extend("databaseTemplate", { scope: "file" }, async () => gatewayTemplate())
  .extend("openStore", ({ database }: { database: TestDatabase }, { onCleanup }): OpenStore => {
    const opened: FencedStore[] = [];
    onCleanup(async () => {
      await Promise.all(opened.map((store) => store.close({ drainMs: 0 })));
    });
    return async (config = {}) => {
      const store = await openStore({ databaseUrl: database.url, ...longTimeouts, ...config });
      opened.push(store);
      return store;
    };
  })
  .extend("store", async ({ openStore }: { openStore: OpenStore }): Promise<FencedStore> => await openStore())
  .extend("connect", ({ database }: { database: TestDatabase }, { onCleanup }): Connect => {
    const clients: pg.Client[] = [];
    onCleanup(async () => {
      await Promise.all(clients.map((client) => client.end()));
    });
    return async () => {
      const client = new pg.Client({ connectionString: database.url });
      client.on("error", () => {}); // A test may cut it; its statement reports that.
      await client.connect();
      clients.push(client);
      return client;
    };
  });

const WAITING = "datname = current_database() and wait_event_type = 'Lock'";

/** On the database's server, or on every server of its cluster. */
async function everywhere(client: pg.Client, text: string): Promise<number> {
  const counted = isOnCitus() ? "select sum(result::int)::int as n from run_command_on_all_nodes($1)" : text;
  const { rows } = await client.query<{ n: number }>(counted, isOnCitus() ? [text] : []);
  return rows[0]?.n ?? 0;
}

/** Resolves as soon as some session of the database waits for a lock. */
export async function untilSomebodyWaits(client: pg.Client, waiting = 1): Promise<void> {
  while ((await everywhere(client, `select count(*)::int as n from pg_stat_activity where ${WAITING}`)) < waiting);
}

/** Cuts the sessions of the database that wait for a lock. */
export async function cutWaitingSessions(client: pg.Client): Promise<void> {
  await everywhere(client, `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity where ${WAITING}`);
}

// A cluster of its own for a test file that breaks workers, with a migrated and distributed
// database, and stores over it.

import { migrate } from "@palisade/guard/schema";
import { CitusCluster, type CitusOptions, queryAt } from "@palisade/testkit";
import { test as base } from "@palisade/testkit/vitest";
import type { FencedStore } from "../../src/fenced-store.js";
import { openStore, type StoreConfig } from "../../src/fenced-store.js";
import { distribute } from "../../src/store/distribute.js";
import { engineOf, type Shards } from "../../src/store/engine.js";
import { longTimeouts, uniqueName } from "../support/fixtures.js";

export { describe, expect } from "@palisade/testkit/vitest";
export { uniqueName };

export interface OwnCluster {
  readonly cluster: CitusCluster;
  /** Of the coordinator's database. */
  readonly url: string;
  readonly query: (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>;
  /** On a worker's database of the same name. */
  readonly onWorker: (worker: number, text: string) => Promise<Record<string, unknown>[]>;
  /** A new name that this worker keeps, by its index. */
  readonly nameOn: (worker: number) => Promise<string>;
}

export type OpenStore = (config?: Partial<StoreConfig>) => Promise<FencedStore>;

export function testWith(options: CitusOptions, durability: "local" | "sync" = "local") {
  return base
    .extend("own", { scope: "file" }, async ({ postgres: _shared }, { onCleanup }): Promise<OwnCluster> => {
      const cluster = await CitusCluster.start(options);
      onCleanup(() => cluster.stop());
      const { url } = await cluster.createDatabase();
      await migrate(url);
      await distribute(url, { shards: 8 });
      const query = (text: string, values: readonly unknown[] = []) => queryAt(url, text, values);
      const onWorker = (worker: number, text: string) =>
        queryAt(String(new URL(new URL(url).pathname, cluster.workers[worker]?.url)), text, []);
      // The coordinator has no standby here; for a write of one worker it commits nothing itself.
      if (durability === "sync") {
        await query("alter system set synchronous_standby_names = 'standby_of_the_coordinator'");
        await query("select pg_catalog.pg_reload_conf()");
      }
      const shards = await shardsOf(query);
      const ports = await query("select groupid, nodeport from pg_dist_node where noderole = 'primary' and groupid > 0");
      const places = cluster.joined.map(({ address }) => ports.find(({ nodeport }) => nodeport === address.port)?.groupid);
      const nameOn = async (worker: number): Promise<string> => {
        for (;;) {
          const name = uniqueName();
          if (shards.shardOf(name).worker === places[worker]) return name;
        }
      };
      return { cluster, url, query, onWorker, nameOn };
    })
    .extend("open", ({ own }: { own: OwnCluster }, { onCleanup }): OpenStore => {
      const stores: FencedStore[] = [];
      onCleanup(async () => {
        await Promise.all(stores.map((store) => store.close({ drainMs: 0 })));
      });
      return async (config = {}) => {
        const store = await openStore({ databaseUrl: own.url, durability, ...longTimeouts, ...config });
        stores.push(store);
        return store;
      };
    });
}

async function shardsOf(query: OwnCluster["query"]): Promise<Shards> {
  const engine = await engineOf(query);
  if (engine.kind !== "citus") throw new Error("the database is not distributed");
  return engine.shards;
}

export const put = (store: FencedStore, resource: string, token: number, value = String(token)) =>
  store.write({ op: "put", resource, token, value });

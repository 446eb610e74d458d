// Makes one Citus cluster of databases of the same name on several servers.
import type { Address } from "./provider.js";
import { withClient } from "./with-client.js";

export interface ClusterWorker {
  /** A database that is never dropped, as the superuser. */
  readonly adminUrl: string;
  /** Where the other servers find it: a proxy perhaps. */
  readonly address: Address;
}

/** The extension everywhere, and the workers joined to the coordinator. */
export async function joinCluster(coordinatorUrl: string, workers: readonly ClusterWorker[]): Promise<void> {
  const database = new URL(coordinatorUrl).pathname.slice(1);
  const urls = [coordinatorUrl, ...workers.map(({ adminUrl }) => urlWith(adminUrl, database))];
  await Promise.all(urls.map((url) => withClient(url, (client) => client.query("create extension citus"))));
  await withClient(coordinatorUrl, async (client) => {
    const { hostname, port } = new URL(coordinatorUrl);
    await client.query("select citus_set_coordinator_host($1, $2)", [hostname, Number(port)]);
    for (const { address } of workers) await client.query("select citus_add_node($1, $2)", [address.host, address.port]);
  });
}

export function urlWith(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}

// The cluster that tests of Citus stand on: its databases, and the ways to break its servers.
import { setTimeout as sleep } from "node:timers/promises";
import { CitusCluster, queryAt } from "@palisade/testkit";
import { describe, expect, test } from "@palisade/testkit/vitest";

async function distribute(url: string): Promise<void> {
  await queryAt(url, "create table items (name text primary key)");
  await queryAt(url, "select create_distributed_table('items', 'name', shard_count => 4)");
}

const insert = (url: string, name: string) => queryAt(url, "insert into items values ($1)", [name]);

/** A name whose row lies on the server with this port. */
async function nameOn(url: string, port: number, prefix = "n"): Promise<string> {
  const [found] = await queryAt(
    url,
    `select $2 || n as name from generate_series(1, 1000) as n
     join pg_dist_shard_placement as place on place.shardid = get_shard_id_for_distribution_column('items', $2 || n)
     where place.nodeport = $1 limit 1`,
    [port, prefix],
  );
  return String(found?.name);
}

describe("a cluster of one's own", () => {
  test("a worker that was killed fails its rows only, and comes back with what was acknowledged", async () => {
    await using cluster = await CitusCluster.start();
    const [first, second] = cluster.workers;
    if (first === undefined || second === undefined) throw new Error("two workers were asked for");
    await using database = await cluster.createDatabase();
    await distribute(database.url);
    const [lost, kept] = [await nameOn(database.url, first.port), await nameOn(database.url, second.port)];
    await insert(database.url, lost);
    await first.crash();
    await expect(insert(database.url, await nameOn(database.url, first.port, "another"))).rejects.toThrow(/connection to the remote node/);
    await insert(database.url, kept);
    await first.restart();
    await expect
      .poll(() => queryAt(database.url, "select name from items order by name").catch(() => []), { timeout: 30_000 })
      .toHaveLength(2);
  });

  test("a proxied link that is broken separates its worker, and standbys hold its commits", async () => {
    await using cluster = await CitusCluster.start({
      workers: 1,
      links: "proxied",
      standbys: "sync",
      settings: { "citus.node_connection_timeout": "500" },
    });
    await using database = await cluster.createDatabase();
    await distribute(database.url);
    await insert(database.url, "a");
    expect(await queryAt(database.url, "select nodeport from pg_dist_node where groupid = 1")).toEqual([
      { nodeport: cluster.links[0]?.port },
    ]);
    await cluster.pairs[0]?.replication.partition();
    const write = insert(database.url, "b").then(() => "acknowledged");
    await expect(Promise.race([write, sleep(100, "waiting")])).resolves.toBe("waiting");
    await cluster.pairs[0]?.replication.heal();
    expect(await write).toBe("acknowledged");
    await cluster.links[0]?.partition();
    await expect(insert(database.url, "c")).rejects.toThrow(/could not establish any connections to the node/);
    await cluster.links[0]?.heal();
    await insert(database.url, "c");
  });
});

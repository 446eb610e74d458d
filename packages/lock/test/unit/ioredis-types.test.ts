// Whether instances of other versions of ioredis compile as nodes.
import { Cluster, Redis } from "ioredis";
import IoredisFour from "ioredis4";
import { Cluster as ClusterFive, Redis as RedisFive } from "ioredis5";
import { expect, test } from "vitest";
import { createLocker, type LockerOptions } from "../../src/index.js";

test("instances of ioredis 4, 5 and 6, of a server and of a cluster, are nodes", () => {
  const six = (redis: Redis, cluster: Cluster): LockerOptions => ({ nodes: [redis, cluster] });
  const five = (redis: RedisFive, cluster: ClusterFive): LockerOptions => ({ nodes: [redis, cluster] });
  const four = (redis: IoredisFour.Redis, cluster: IoredisFour.Cluster): LockerOptions => ({ nodes: [redis, cluster] });
  // @ts-expect-error neither options of ioredis nor an instance
  const none = (given: { readonly url: string }): LockerOptions => ({ nodes: [given] });
  expect([six, five, four, none].every((nodes) => typeof nodes === "function")).toBe(true);
});

test("an instance with a keyPrefix is refused before any I/O, whichever version it is of", () => {
  const given = { lazyConnect: true, keyPrefix: "mine:" } as const;
  const own = [new Redis(given), new RedisFive(given), new IoredisFour(given)];
  const clusters = [
    new Cluster(["redis://127.0.0.1:1"], given),
    new ClusterFive(["redis://127.0.0.1:1"], { lazyConnect: true, redisOptions: { keyPrefix: "mine:" } }),
  ];
  for (const node of [...own, ...clusters, { host: "127.0.0.1", keyPrefix: "mine:" }]) {
    const options: LockerOptions = { nodes: [node] };
    expect(() => createLocker(options)).toThrow(/^nodes\[0\] has the keyPrefix "mine:", and the lock's keys have none/);
  }
  for (const instance of [...own, ...clusters]) instance.disconnect();
});

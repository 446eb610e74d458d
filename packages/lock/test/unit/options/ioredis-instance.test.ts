// An ioredis instance given as a node: of whichever version, it is read for where its server is and
// who asks, and refused where that is not one server.
import { Cluster, Redis } from "ioredis";
import IoredisFour from "ioredis4";
import { Cluster as ClusterFive, Redis as RedisFive } from "ioredis5";
import { expect, onTestFinished, test } from "vitest";
import { createLocker, type LockerOptions } from "../../../src/index.js";
import { readPolicy } from "../../../src/options/policy.js";

const versions = { 4: IoredisFour as unknown as typeof Redis, 5: RedisFive as unknown as typeof Redis, 6: Redis };
const clusters = { 5: ClusterFive as unknown as typeof Cluster, 6: Cluster };

function idle<Instance extends { disconnect(): void }>(instance: Instance): Instance {
  onTestFinished(() => instance.disconnect());
  return instance;
}

test("instances of ioredis 4, 5 and 6 compile as nodes", () => {
  const all = (four: IoredisFour.Redis, five: RedisFive, six: Redis): LockerOptions => ({ nodes: [four, five, six] });
  // @ts-expect-error neither options of ioredis nor an instance
  const none = (given: { readonly url: string }): LockerOptions => ({ nodes: [given] });
  expect([all, none].every((nodes) => typeof nodes === "function")).toBe(true);
});

test.each(Object.entries(versions))(
  "of version %s an instance is read for its server and its user, and for nothing else",
  (_, Instance) => {
    const careless = {
      lazyConnect: true,
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      connectTimeout: 7,
      commandTimeout: 7,
    } as const;
    const tls = { ca: "a certificate", servername: "redis.example" };
    const given = { host: "Redis.Example", port: 7_001, family: 6, username: "lock", password: "s3cret", db: 3, tls };
    const options = idle(new Instance({ ...given, ...careless }));
    const url = idle(new Instance("rediss://:s3cret@10.0.0.7:7002/2", careless));
    const socket = idle(new Instance({ path: "/run/redis.sock", ...careless }));
    const { nodes } = readPolicy({ nodes: [options, url, socket] });
    expect(nodes[0]).toEqual(given);
    expect(nodes[1]).toMatchObject({ host: "10.0.0.7", port: 7_002, password: "s3cret", db: 2 });
    expect(nodes[1]).toHaveProperty("tls");
    expect(nodes[2]).toMatchObject({ path: "/run/redis.sock" });
    for (const node of nodes) expect(node).not.toHaveProperty("enableOfflineQueue");
    expect([options, url, socket].map(({ status }) => status)).toEqual(["wait", "wait", "wait"]);
  },
);

test.each(Object.entries(clusters))("of version %s a cluster is refused with one sentence, before any I/O", (_, Instance) => {
  const cluster = idle(new Instance(["redis://127.0.0.1:1"], { lazyConnect: true }));
  expect(() => createLocker({ nodes: [cluster] })).toThrow(
    new TypeError("nodes[0] is a cluster, and a node is one server: name one server that is no part of a cluster"),
  );
});

test.each(Object.entries(versions))("of version %s a group under sentinels and a keyPrefix are refused, before any I/O", (_, Instance) => {
  const group = idle(new Instance({ sentinels: [{ host: "127.0.0.1", port: 1 }], name: "mine", lazyConnect: true }));
  expect(() => createLocker({ nodes: [group] })).toThrow(
    new TypeError("nodes[0] is a group under sentinels, and a node is one server: name the master itself"),
  );
  const prefixed = idle(new Instance({ host: "127.0.0.1", keyPrefix: "mine:", lazyConnect: true }));
  expect(() => createLocker({ nodes: [prefixed] })).toThrow(/^nodes\[0\] has the keyPrefix "mine:", and the lock's keys have none/);
});

test("an instance and a URL of the same server are one server", () => {
  const instance = idle(new Redis({ host: "a", lazyConnect: true }));
  expect(() => readPolicy({ nodes: ["redis://a", instance] })).toThrow(
    new RangeError("nodes[0] and nodes[1] are both a:6379: one server must not vote twice"),
  );
});

// Options: defaults, bounds, and messages for wrong ones; nodes that are given as ioredis instances.

import { Cluster, Redis } from "ioredis";
import IoredisFour from "ioredis4";
import { Cluster as ClusterFive, Redis as RedisFive } from "ioredis5";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocker, type LockerOptions } from "../../../src/index.js";
import { readLeaseRequest, readPolicy, readResources } from "../../../src/options/policy.js";

const nodes = (count: number): string[] => Array.from({ length: count }, (_, i) => `redis://127.0.0.1:${7000 + i}`);
const policyOf = (options: Partial<LockerOptions>): ReturnType<typeof readPolicy> => readPolicy({ nodes: nodes(5), ...options });
/** For what TypeScript would not let through. */
const loose = (options: object): ReturnType<typeof readPolicy> => readPolicy(options as LockerOptions);

/** The same option with each of these values. */
function each(name: string, ...values: readonly unknown[]): object[] {
  return values.map((value) => ({ [name]: value }));
}

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return String(error);
  }
  return "";
}

describe("options of createLocker", () => {
  test("have defaults, frozen", () => {
    const policy = policyOf({});
    expect(policy).toMatchObject({
      size: 5,
      quorum: 3,
      namespace: "palisade",
      ttlMs: 10_000,
      nodeTimeoutMs: 250,
      driftFactor: 0.01,
      waitMs: 10_000,
    });
    expect(policy).toMatchObject({
      maxTtlMs: undefined,
      retentionMs: 86_400_000,
      retry: { minDelayMs: 4, maxDelayMs: 500 },
    });
    expect(Object.isFrozen(policy) && Object.isFrozen(policy.retry)).toBe(true);
  });

  test("leases last no longer than the longest that was asked for, if nothing else is said", () => {
    expect(policyOf({ maxTtlMs: 5_000 }).ttlMs).toBe(5_000);
    expect(policyOf({ maxTtlMs: 50_000 }).ttlMs).toBe(10_000);
  });

  test("the majority is the quorum; a stricter one may be asked for, a laxer one may not", () => {
    expect([1, 2, 3, 4, 5, 6, 7].map((count) => readPolicy({ nodes: nodes(count) }).quorum)).toEqual([1, 2, 2, 3, 3, 4, 4]);
    expect(policyOf({ quorum: 5 }).quorum).toBe(5);
    for (const quorum of [0, 1, 2, 6, 3.5, Number.NaN]) expect(() => policyOf({ quorum })).toThrow(RangeError);
  });

  test("out of range are a RangeError", () => {
    const wrong: object[] = [
      ...each("ttlMs", 0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1.5, 2),
      ...each("nodeTimeoutMs", 0, 20_000),
      ...each("driftFactor", -0.1, 0.9),
      ...each("label", "", "x".repeat(257)),
      ...each("namespace", "", "a{b}", "a b"),
      ...[{ maxTtlMs: 0 }, { waitMs: -1 }, { nodes: [] }],
      { ttlMs: 2_000, maxTtlMs: 1_000 },
      { retentionMs: 10, maxTtlMs: 10_000 },
      ...each("retry", { tries: 0 }, { minDelayMs: 10, maxDelayMs: 5 }),
    ];
    for (const options of wrong) expect(() => policyOf(options), JSON.stringify(options)).toThrow(RangeError);
  });

  test("of another type, or unknown, are a TypeError that says so", () => {
    const wrong: [object, string][] = [
      [{}, "nodes must be an array"],
      [{ nodes: "redis://127.0.0.1" }, "nodes must be an array"],
      [{ nodes: nodes(3), ttlMs: "10" }, "ttlMs must be a number, not string 10"],
      [{ nodes: nodes(3), ttlMS: 10 }, 'has no option "ttlMS"; it has nodes, '],
      [{ nodes: nodes(3), retryCount: 10 }, 'has no option "retryCount"'],
      [{ nodes: "redis://:s3cret@a" }, "ioredis instances, not a string"],
      [{ nodes: nodes(3), retry: 3 }, "the options of retry must be an object, not number 3"],
      [{ nodes: nodes(3), retry: { maxDelay: 3 } }, 'retry has no option "maxDelay"; it has '],
      [{ nodes: nodes(3), namespace: 7 }, "namespace must be a string"],
      [{ nodes: nodes(3), label: 7 }, "label must be a string"],
    ];
    for (const [options, words] of wrong) {
      expect(() => loose(options), words).toThrow(TypeError);
      expect(() => loose(options)).toThrow(words);
    }
    for (const none of [undefined, []]) expect(() => loose(none as never)).toThrow(TypeError);
  });

  test("that name no node are a TypeError, which says why and tells no secret", () => {
    const wrong: [unknown, string][] = [
      [undefined, "nodes[0] must be a Redis URL, ioredis options or an ioredis instance, not undefined"],
      [[], "nodes[0] must be a Redis URL, ioredis options or an ioredis instance, not an array"],
      [7, "nodes[0] must be a Redis URL, ioredis options or an ioredis instance, not number 7"],
      ["localhost:6379", "nodes[0]: a node's URL must begin with redis:// or rediss://"],
      ["redis://:s3cret@[bad", "nodes[0]: a node's URL is malformed"],
      ["redis://:s3cret@a:70000", "nodes[0]: the port of a node's URL must be from 1 to 65535"],
      ["redis://a:6379x", "nodes[0]: a node's URL is malformed"],
      ["redis://:s3cret@a/first", "nodes[0]: what follows the / of a node's URL must be the number of a database"],
      [
        "redis://:s3cret@a?keyPrefix=mine:",
        'nodes[0] has the keyPrefix "mine:", and the lock\'s keys have none: use the option namespace, and an instance without it',
      ],
      ["redis://:s3cret@a?port=7", "nodes[0]: a node's URL must name its server before the ?, not by port"],
      ["redis://:s3cret@a?path=/b", "nodes[0]: a node's URL must name its server before the ?, not by path"],
      [new URL("redis://a"), "nodes[0] must be the text of a URL, not a URL object: give its href"],
      [{}, "nodes[0] names no server: give host and port, or path"],
      [{ url: "redis://a" }, "nodes[0] names no server: give host and port, or path"],
      [{ host: "" }, "nodes[0] names no server: host is empty"],
      [{ host: 7 }, "nodes[0].host must be a string, not a number"],
      [{ host: "a", password: 5_3 }, "nodes[0].password must be a string, not a number"],
      [{ host: "a", port: "http" }, "nodes[0].port must be a number, not string http"],
      [{ host: "a", port: true }, "nodes[0].port must be a number, not boolean true"],
      [{ host: "a", db: "x" }, "nodes[0].db must be a number, not string x"],
      [{ host: "a", sentinels: [] }, "nodes[0] is a group under sentinels, and a node is one server: name the master itself"],
      [{ duplicate() {}, isOpen: true }, "nodes[0] is a client, but not one of ioredis: give its URL, or its options"],
    ];
    for (const [source, message] of wrong) expect(() => loose({ nodes: [source] }), message).toThrow(new TypeError(message));
  });

  test("whose numbers no server has are a RangeError", () => {
    const wrong: [object][] = [
      [{ host: "a", port: 0 }],
      [{ host: "a", port: 65_536 }],
      [{ host: "a", port: 1.5 }],
      [{ host: "a", port: "99999" }],
      [{ host: "a", db: -1 }],
    ];
    for (const nodes of wrong) expect(() => loose({ nodes }), JSON.stringify(nodes)).toThrow(RangeError);
  });

  test("ways to name a node", () => {
    const ways = [
      "redis://a",
      "REDIS://a:1/3?family=6",
      "rediss://u:p@[::1]:1",
      { host: "b" },
      { port: 7 },
      { host: "c", port: "6379", db: 0, username: "u", password: "p", tls: {} },
      { path: "/run/redis.sock" },
    ];
    expect(loose({ nodes: ways }).nodes).toEqual(ways);
  });

  test("two ways to one server are one node, and an empty place is none", () => {
    expect(() => loose({ nodes: ["redis://a:6379", "redis://b", "redis://:pw@A/3"] })).toThrow(
      new RangeError("nodes[0] and nodes[2] are both a:6379: one server must not vote twice"),
    );
    expect(() => loose({ nodes: ["redis://a", { host: "a" }] })).toThrow(RangeError);
    expect(() => loose({ nodes: new Array(3) })).toThrow(
      "nodes[0] must be a Redis URL, ioredis options or an ioredis instance, not undefined",
    );
  });

  test("are refused with numbers and what would do", () => {
    const wrong: [object, string][] = [
      [{ quorum: 1 }, "quorum must be from 3 (the majority of 5 nodes) to 5, not 1: two smaller quorums need not share a node"],
      [{ quorum: 6 }, "quorum must be from 3 (the majority of 5 nodes) to 5, not 6: there are no more nodes"],
      [{ ttlMs: 2_000, maxTtlMs: 1_000 }, "ttlMs must be at most maxTtlMs, which is 1000, not 2000"],
      [{ ttlMs: 2 }, "ttlMs 2 leaves -0.02 ms after the allowance for drift, and a tenth of it is needed: at least 3 ms"],
    ];
    for (const [options, message] of wrong) expect(() => policyOf(options), message).toThrow(new RangeError(message));
  });

  test("a ttl that is called long enough is", () => {
    for (const options of [{}, { driftFactor: 0.5 }, { driftFactor: 0 }, { driftFactor: 0.3 }]) {
      const [, least] = /at least (\d+) ms$/.exec(messageOf(() => policyOf({ ...options, ttlMs: 1, nodeTimeoutMs: 1 }))) ?? [];
      expect(policyOf({ ...options, ttlMs: Number(least) }).ttlMs).toBe(Number(least));
      expect(() => policyOf({ ...options, ttlMs: Number(least) - 1 })).toThrow(RangeError);
    }
  });
});

describe("resources", () => {
  test("one, or a list of different ones, of any characters", () => {
    expect(readResources("orders/42")).toEqual(["orders/42"]);
    expect(readResources(["b", "a"])).toEqual(["b", "a"]);
    for (const resource of ["a:b", "{a}b", "}{", "a\u0000b", "日本語", "👩‍🚀", " ", "ü".repeat(256)])
      expect(readResources(resource)).toEqual([resource]);
  });

  test("none, the same twice, too many, too long, or no text in Unicode are a RangeError", () => {
    const wrong: [unknown][] = [
      [""],
      [[]],
      ["x".repeat(513)],
      ["x".repeat(1_024)],
      ["ü".repeat(257)],
      [["a", "b", "a"]],
      ["\ud800"],
      ["a\udc00"],
      [Array.from({ length: 129 }, (_, i) => `r${i}`)],
    ];
    for (const [value] of wrong) expect(() => readResources(value), JSON.stringify(value)).toThrow(RangeError);
  });

  test("of another type are a TypeError", () => {
    const wrong: [unknown][] = [[undefined], [null], [7], [{}], [["a", 7]]];
    for (const [value] of wrong) expect(() => readResources(value), JSON.stringify(value)).toThrow(TypeError);
  });
});

describe("options of a lease", () => {
  const policy = policyOf({ maxTtlMs: 60_000 });
  const read = (options: unknown): ReturnType<typeof readLeaseRequest> => readLeaseRequest("acquire", policy, { resources: "r", options });

  test("are those of the locker unless given", () => {
    expect(read(undefined)).toMatchObject({ ttlMs: 10_000, waitMs: 10_000, renew: false });
    expect(read({ ttlMs: 500, waitMs: 0, renew: true })).toMatchObject({
      ttlMs: 500,
      waitMs: 0,
      renew: true,
    });
  });

  test("maxHoldMs shortens the ttl", () => {
    expect(read({ maxHoldMs: 300 })).toMatchObject({ ttlMs: 300, maxHoldMs: 300 });
  });

  test("using renews, whatever the locker says, and does not take the option", () => {
    expect(readLeaseRequest("using", policy, { resources: "r", options: {} }).renew).toBe(true);
    expect(() => readLeaseRequest("using", policy, { resources: "r", options: { renew: false } })).toThrow(TypeError);
  });

  test("out of range are a RangeError, of another type a TypeError", () => {
    for (const options of [...each("ttlMs", 0, -5, Number.NaN, 60_001, 2), ...each("waitMs", -1, Number.NaN), { maxHoldMs: 0 }])
      expect(() => read(options), JSON.stringify(options)).toThrow(RangeError);
    for (const options of [{ ttlMs: "5" }, { renew: 1 }, { signal: {} }, { wait: 5 }, 7, null, []])
      expect(() => read(options), JSON.stringify(options)).toThrow(TypeError);
  });

  test("a signal of another realm is a signal", () => {
    const signal = { aborted: false, addEventListener() {}, removeEventListener() {} };
    expect(read({ signal }).signal).toBe(signal);
  });
});

// An ioredis instance given as a node: of whichever version, it is read for where its server is and
// who asks, and refused where that is not one server.

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

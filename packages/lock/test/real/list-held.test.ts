// What is held now, and how each node stands, as operators are told.
import { Redis } from "ioredis";
import { describe, expect, test, until } from "./lock-test.js";

describe("listHeld", () => {
  test("names each held resource once, in order, with its holder, time, token and how many wait, and no free one", async ({
    shared,
    eye,
  }) => {
    const locker = shared({ label: "worker-7", ttlMs: 50_000 });
    const leases = await Promise.all(["b", "a*", "a"].map((name) => locker.acquire(name)));
    await (await locker.acquire("free")).release();
    const { held, more, silent, steps } = await locker.fleet.listHeld();
    expect({ more, silent }).toEqual({ more: false, silent: [] });
    expect(steps).toBeGreaterThan(0);
    expect(held.map(({ resource }) => resource)).toEqual(["a", "a*", "b"]);
    expect(held[2]).toMatchObject({ state: "held", holder: "worker-7", token: leases[0]?.token });
    expect(held[2]?.remainingMs).toBeGreaterThan(40_000);
    const [secret = ""] = (await eye.holders("b"))[0]?.split("|") ?? [];
    expect(secret.length).toBe(22);
    expect(JSON.stringify(held)).not.toContain(secret);
    void shared().acquire("b").catch(String);
    await expect.poll(async () => (await locker.fleet.listHeld()).held.map(({ waiting }) => waiting)).toEqual([0, 0, 1]);
    expect((await locker.inspect("b")).waiting).toBe(1);
  });

  test("takes a prefix as it is written, and as many as were asked for, and says that there are more", async ({ locker }) => {
    const names = ["x/1", "x/2", "x*", "x[1]", "x?", "y", 'x/\u001b"3'];
    await Promise.all(names.map((name) => locker.acquire(name)));
    const listed = async (prefix: string) => (await locker.fleet.listHeld({ prefix })).held.map(({ resource }) => resource);
    expect(await listed("x/")).toEqual(['x/\u001b"3', "x/1", "x/2"]);
    for (const name of ["x*", "x[1]", "x?"]) expect(await listed(name)).toEqual([name]);
    expect(await listed("nothing")).toEqual([]);
    expect(await locker.fleet.listHeld({ limit: 2 })).toMatchObject({ held: [{ resource: "x*" }, { resource: 'x/\u001b"3' }], more: true });
    expect((await locker.fleet.listHeld({ limit: 7 })).more).toBe(false);
  });

  test("finds a lease whose counter has run out, because it was renewed for longer than counters are kept", async ({ redis, locker }) => {
    const lease = await locker.acquire("long");
    const clients = redis.urls.map((url) => new Redis(url));
    await Promise.all(clients.map((client) => client.del(`{${redis.namespace}}:token:long`)));
    for (const client of clients) client.disconnect();
    const [found] = (await locker.fleet.listHeld()).held;
    expect(found).toMatchObject({ resource: "long", state: "held" });
    expect(found?.token).toBeGreaterThanOrEqual(lease.token);
  });

  test("shows a thousand leases of which a quorum knows, and a split one, while a minority is down", async ({ own }) => {
    const { nodes, locker } = await own(5, { ttlMs: 50_000, waitMs: 30_000 });
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => locker.acquire(`bulk/${i}`)));
    await nodes[4]?.kill();
    await until(async () => (await locker.fleet.nodes())[4]?.state === "silent", "the killed one is noticed");
    const lock = "{palisade}:lock:split";
    await Promise.all([0, 1].map((i) => nodes[i]?.cli("SET", lock, "a|one", "PX", "60000")));
    await Promise.all([2, 3].map((i) => nodes[i]?.cli("SET", lock, "b|two", "PX", "60000")));
    await nodes[0]?.cli("SET", "{palisade}:lock:gone", "c|three", "PX", "60000");
    const { held, silent } = await locker.fleet.listHeld();
    expect(silent).toEqual(["n5"]);
    expect(held.filter(({ state }) => state === "held")).toHaveLength(1_000);
    // With the one that is down either of the two could have a quorum.
    expect(held.filter(({ state }) => state !== "held")).toMatchObject([{ resource: "split", state: "unknown" }]);
    await nodes[3]?.kill();
    await nodes[2]?.kill();
    await expect.poll(() => locker.fleet.listHeld().catch(({ code }) => code)).toBe("LOCK_NO_QUORUM");
  });

  test("skips keys that are not the lock's", async ({ redis, locker }) => {
    const client = new Redis(redis.urls[0] ?? "");
    await client.lpush(`{${redis.namespace}}:lock:list`, "x");
    client.disconnect();
    await locker.acquire("r");
    expect((await locker.fleet.listHeld()).held.map(({ resource }) => resource)).toEqual(["r"]);
  });

  test("refuses options that it does not have", async ({ locker }) => {
    await expect(locker.fleet.listHeld({ prefx: "a" } as never)).rejects.toThrow(/has no option "prefx"; it has .*prefix/);
    for (const limit of [0, 1.5, 100_001]) await expect(locker.fleet.listHeld({ limit })).rejects.toThrow(RangeError);
    await expect(locker.fleet.listHeld({ prefix: 7 } as never)).rejects.toThrow(TypeError);
  });
});

describe("nodes", () => {
  test("says which votes, which waits and for how long, and which is silent and why", async ({ own }) => {
    const { nodes, running, locker } = await own(3, { ttlMs: 20_000 });
    await locker.ready();
    const hosts = running.urls.map((url) => new URL(url).host);
    expect(await locker.fleet.nodes()).toMatchObject(hosts.map((address, at) => ({ node: `n${at + 1}`, address, state: "votes" })));
    await nodes[1]?.kill();
    await nodes[2]?.cli("FLUSHALL");
    await expect.poll(async () => (await locker.fleet.nodes()).map(({ state }) => state)).toEqual(["votes", "silent", "waits"]);
    const [, silent] = await locker.fleet.nodes();
    expect(silent?.reason).toMatch(/ECONNREFUSED|ECONNRESET|closed|lost/);
  });

  test("tells latency, clock, memory, version, durability and incarnation of those that answer, and nothing of a silent one", async ({
    own,
  }) => {
    const { nodes, locker } = await own(3, { ttlMs: 20_000, nodeTimeoutMs: 1_000 });
    await locker.ready();
    await nodes[0]?.shiftClock(-7_000);
    await nodes[1]?.cli("CONFIG", "SET", "maxmemory", "64mb");
    await nodes[1]?.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    await nodes[1]?.cli("CONFIG", "SET", "appendfsync", "everysec");
    await nodes[2]?.pause();
    const [first, second, third] = await locker.fleet.nodes();
    expect(first).toMatchObject({
      durable: true,
      version: expect.stringMatching(/^\d+\.\d+\./),
      incarnation: expect.stringMatching(/.{22}/),
    });
    expect(first?.memory).toEqual({ usedBytes: expect.any(Number), evictionPolicy: "noeviction" });
    expect(first?.latencyMs).toBeGreaterThan(0);
    const off = (first?.clockAheadMs ?? 0) + 7_000;
    expect(Math.abs(off)).toBeLessThanOrEqual((first?.clockUncertaintyMs ?? 0) + 1);
    expect(first?.clockUncertaintyMs).toBeGreaterThanOrEqual((first?.latencyMs ?? 0) / 2);
    expect(Math.abs(second?.clockAheadMs ?? 9_999)).toBeLessThanOrEqual(second?.clockUncertaintyMs ?? 0);
    expect(second).toMatchObject({ durable: false, memory: { limitBytes: 64 * 2 ** 20, evictionPolicy: "allkeys-lru" } });
    expect(third).toEqual({ node: "n3", address: third?.address, state: "silent", reason: expect.stringMatching(/TIMEOUT|no answer/) });
    await nodes[2]?.resume();
  });

  test("says what a node hides for lack of rights, and that one without INFO lacks a right", async ({ fleet, open }) => {
    const { nodes, urls } = await fleet({ nodes: 3, appendfsync: "everysec" });
    await open({ nodes: urls }).ready();
    for (const [at, lacking] of ["config", "info"].entries())
      await nodes[at]?.cli("ACL", "SETUSER", "poor", "on", ">p", "~*", "&*", "+@all", `-${lacking}`);
    await nodes[2]?.cli("ACL", "SETUSER", "poor", "on", ">p", "~*", "&*", "+@all");
    const locker = open({ nodes: urls.map((url) => url.replace("redis://", "redis://poor:p@")) });
    const [first, second, third] = await locker.fleet.nodes();
    expect(first).toMatchObject({ state: "votes", hidden: expect.stringMatching(/its settings: NOPERM.*config/) });
    expect(first).not.toHaveProperty("durable");
    expect(second).toMatchObject({ state: "silent", reason: expect.stringContaining("NOPERM") });
    await nodes[2]?.cli("CONFIG", "SET", "appendfsync", "always");
    // What it answered before is not on disk, so the next restart is a loss of memory.
    expect(third).toMatchObject({ state: "votes", durable: false });
    expect((await locker.fleet.nodes())[2]).toMatchObject({ state: "votes", durable: false });
  });

  test("M1 shows each member beside its own address after a replacement", async ({ fleet, open }) => {
    const { nodes, urls } = await fleet({ nodes: 4 });
    const hosts = urls.map((url) => new URL(url).host);
    const locker = open({ nodes: urls.slice(0, 3), ttlMs: 20_000 });
    await locker.ready();
    await locker.fleet.reconfigure({ replace: hosts[0] ?? "", by: urls[3] ?? "" });
    await nodes[1]?.kill();
    const silent = async () => (await locker.fleet.nodes()).filter(({ state }) => state === "silent").map(({ address }) => address);
    await expect.poll(silent).toEqual([hosts[1]]);
    expect((await locker.fleet.nodes()).map(({ address }) => address).toSorted()).toEqual(hosts.slice(1).toSorted());
  });
});

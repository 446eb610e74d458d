// Looking inside, breaking the glass, asking whether a token was issued, and the life of a locker.
import { type ForceReleaseEvent, type LockError, MAX_TOKEN } from "@palisade/lock";
import { describe, expect, failure, listen, test, timed, until } from "./lock-test.js";

describe("inspect", () => {
  test("says free, and since when by which token", async ({ locker }) => {
    expect(await locker.inspect("r")).toMatchObject({ resource: "r", state: "free" });
    const lease = await locker.acquire("r");
    await lease.release();
    expect(await locker.inspect("r")).toMatchObject({ state: "free", token: lease.token });
  });

  test("says who holds it, with which token and for how long, and what each node knows", async ({ shared, eye }) => {
    const locker = shared({ label: "worker-7" });
    const lease = await locker.acquire("r", { ttlMs: 50_000 });
    const inspection = await locker.inspect("r");
    expect(inspection).toMatchObject({ state: "held", holder: "worker-7", token: lease.token });
    expect(inspection.remainingMs).toBeGreaterThan(40_000);
    expect(inspection.ballots).toHaveLength(5);
    expect(inspection).not.toHaveProperty("owner");
    const [secret = ""] = (await eye.holders("r"))[0]?.split("|") ?? [];
    expect(secret.length).toBe(22);
    expect(JSON.stringify(inspection)).not.toContain(secret);
  });
});

describe("forceRelease", () => {
  test("T1 removes the holder and fences it: the fence is above its token and below the next lease's", async ({ locker, eye }) => {
    const lease = await locker.acquire("r");
    using heard = listen<ForceReleaseEvent>("forceRelease", ({ resource }) => resource === "r");
    const forced = await locker.fleet.forceRelease("r", { reason: "the worker hangs" });
    expect(forced.fence).toBeGreaterThan(lease.token);
    expect(forced.removed).toHaveLength(1);
    expect(forced.before).toMatchObject({ state: "held", token: lease.token });
    expect(heard.events.filter(({ fence }) => fence === forced.fence)).toMatchObject([{ reason: "the worker hangs" }]);
    await eye.gone("r");
    await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect((await locker.acquire("r")).token).toBeGreaterThan(forced.fence);
  });

  test("T1 of a free resource fences its last holder: the key ran out, and the holder may not know", async ({ locker, eye }) => {
    const lease = await locker.acquire("r");
    await expect.poll(() => eye.holders("r")).not.toContain(null);
    await eye.remove("r", [0, 1, 2, 3, 4]);
    const forced = await locker.fleet.forceRelease("r", { reason: "test" });
    expect(forced.removed).toEqual([]);
    expect(forced.fence).toBeGreaterThan(lease.token);
    expect((await locker.acquire("r")).token).toBeGreaterThan(forced.fence);
  });

  test("without a reason is misuse; without a quorum it is LOCK_NO_QUORUM and removes no holder", async ({ own }) => {
    const { nodes, locker } = await own(3, { nodeTimeoutMs: 250 });
    const lease = await locker.acquire("r", { ttlMs: 60_000 });
    await expect(locker.fleet.forceRelease("r", {} as never)).rejects.toThrow(TypeError);
    await expect(locker.fleet.forceRelease("r", { reason: "" })).rejects.toThrow(RangeError);
    await Promise.all([nodes[0]?.pause(), nodes[1]?.pause()]);
    await expect(locker.fleet.forceRelease("r", { reason: "test" })).rejects.toMatchObject({
      code: "LOCK_NO_QUORUM",
    });
    await Promise.all([nodes[0]?.resume(), nodes[1]?.resume()]);
    await expect.poll(async () => (await lease.extend()).outcome).toBe("renewed");
  });
});

describe("issued", () => {
  test("G4 tokens of leases were issued, higher ones were not", async ({ locker }) => {
    const lease = await locker.acquire("r");
    expect(await locker.fleet.issued("r", lease.token)).toBe(true);
    expect(await locker.fleet.issued("r", lease.token - 1)).toBe(true);
    expect(await locker.fleet.issued("r", lease.token + 1_000_000)).toBe(false);
    expect(await locker.fleet.issued("r", MAX_TOKEN)).toBe(false);
  });

  test("G4 a token that only one node stores was no lease's", async ({ locker, redis, eye }) => {
    const lease = await locker.acquire("r");
    await expect.poll(() => eye.tokens("r")).toEqual(Array(5).fill(String(lease.token)));
    const { Redis } = await import("ioredis");
    const client = new Redis(redis.urls[2] ?? "");
    await client.set(`{${redis.namespace}}:token:r`, String(lease.token + 5));
    client.disconnect();
    expect(await locker.fleet.issued("r", lease.token + 5)).toBe(false);
  });

  test("T1 where too few answer to tell, the token is raised on a quorum first: the next lease is above it", async ({ own }) => {
    const { nodes, locker } = await own(5);
    const first = await locker.acquire("r");
    await until(
      async () =>
        (await Promise.all(nodes.map((node) => node.cli("GET", "{palisade}:token:r")))).every((token) => token === String(first.token)),
      "all nodes store it",
    );
    await first.release();
    await Promise.all([nodes[3]?.partition(), nodes[4]?.partition()]);
    const lease = await locker.acquire("r");
    await lease.release();
    await nodes[3]?.heal();
    await nodes[4]?.heal();
    await until(async () => (await locker.ready()).admitted.length === 5, "all nodes are back");
    await Promise.all([nodes[0]?.kill(), nodes[1]?.kill()]);
    expect(await nodes[3]?.cli("GET", "{palisade}:token:r")).toBe(String(first.token));
    await expect.poll(() => locker.fleet.issued("r", lease.token).catch((error: LockError) => error.code)).toBe(true);
    const tokens = await Promise.all([2, 3, 4].map((i) => nodes[i]?.cli("GET", "{palisade}:token:r")));
    for (const token of tokens) expect(Number(token)).toBeGreaterThanOrEqual(lease.token);
  });

  test("is LOCK_NO_QUORUM when too few nodes answer", async ({ own }) => {
    const { nodes, locker } = await own(3);
    const lease = await locker.acquire("r");
    await Promise.all([nodes[0]?.kill(), nodes[1]?.kill()]);
    const error = await failure(locker.fleet.issued("r", lease.token));
    expect(error).toMatchObject({
      code: "LOCK_NO_QUORUM",
      // Together when both were seen to break, each for itself when one was tried again meanwhile.
      message: expect.stringMatching(/1 of 3 nodes answered .*; n1 \(\S+:\d+\) (and|unreachable \(.*\),) n2 \(\S+:\d+\) unreachable/),
    });
  });

  test("of what is no token is misuse", async ({ locker }) => {
    for (const token of [0, -1, 1.5, MAX_TOKEN + 1, Number.NaN]) await expect(locker.fleet.issued("r", token)).rejects.toThrow(RangeError);
    await expect(locker.fleet.issued("r", "7" as never)).rejects.toThrow(TypeError);
    await expect(locker.fleet.issued("", 7)).rejects.toThrow(RangeError);
  });
});

describe("a locker", () => {
  test("is ready when a quorum is admitted, and names the nodes that are not", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    await open({ nodes: urls }).ready();
    await nodes[2]?.kill();
    const state = await open({ nodes: urls }).ready();
    expect(state.admitted).toEqual(["n1", "n2"]);
    expect(state.unreachable).toMatchObject([{ node: "n3", cause: expect.stringMatching(/ECONNREFUSED|closed|lost/) }]);
  });

  test("that cannot become ready says why within its waitMs", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    await Promise.all(nodes.map((node) => node.kill()));
    const { tookMs, result } = await timed(() => failure(open({ nodes: urls, waitMs: 100 }).ready()));
    expect(result).toMatchObject({
      code: "LOCK_NO_QUORUM",
      message: expect.stringMatching(/^0 of 3 nodes are ready, 2 needed; n1 \(\S+\), n2 \(\S+\) and n3 \(\S+\) unreachable/),
    });
    // The default would be ten seconds.
    expect(tookMs).toBeLessThan(8_000);
  });

  test("does not keep the first caller waiting for a node that is not there", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    await open({ nodes: urls }).ready();
    await nodes[0]?.partition();
    const { tookMs } = await timed(() => open({ nodes: urls, nodeTimeoutMs: 250, connectTimeoutMs: 25_000 }).acquire("r"));
    expect(tookMs).toBeLessThan(15_000);
  });

  test("refuses leases that are longer than the fleet's", async ({ fleet, open }) => {
    const { urls } = await fleet({ nodes: 3 });
    await open({ nodes: urls, maxTtlMs: 5_000, ttlMs: 1_000 }).ready();
    await expect(open({ nodes: urls, maxTtlMs: 60_000 }).ready()).rejects.toThrow(RangeError);
    await expect(open({ nodes: urls, maxTtlMs: 60_000 }).acquire("r")).rejects.toThrow(RangeError);
    const modest = open({ nodes: urls, ttlMs: 1_000 });
    await expect(modest.acquire("r", { ttlMs: 5_001 })).rejects.toThrow(/longer than this fleet's leases may be: 5000 ms/);
    expect((await modest.acquire("r", { ttlMs: 5_000 })).held).toBe(true);
    await expect(modest.using("s", (lease) => lease.extend(6_000))).rejects.toThrow(RangeError);
  });

  test("of another fleet's nodes is refused before it can vote", async ({ fleet, open }) => {
    const [one, two] = await Promise.all([fleet({ nodes: 3 }), fleet({ nodes: 3 })]);
    await Promise.all([open({ nodes: one.urls }).ready(), open({ nodes: two.urls }).ready()]);
    const mixed = open({ nodes: [...one.urls.slice(0, 1), ...two.urls.slice(0, 1)] });
    await expect(mixed.ready()).rejects.toMatchObject({ code: "FLEET_MISMATCH" });
    await expect(mixed.acquire("r")).rejects.toMatchObject({ code: "FLEET_MISMATCH" });
    await expect(mixed.tryAcquire("r")).rejects.toMatchObject({ code: "FLEET_MISMATCH" });
    await expect(mixed.fleet.issued("r", 7)).rejects.toMatchObject({ code: "FLEET_MISMATCH" });
  });

  test("M1 goes on with the members of its fleet where one address of three leads to another fleet, or one is left out", async ({
    fleet,
    open,
  }) => {
    const [one, two] = await Promise.all([fleet({ nodes: 3 }), fleet({ nodes: 3 })]);
    await Promise.all([open({ nodes: one.urls }).ready(), open({ nodes: two.urls }).ready()]);
    for (const nodes of [[...one.urls.slice(0, 2), ...two.urls.slice(0, 1)], one.urls.slice(0, 2)]) {
      const locker = open({ nodes });
      await locker.ready();
      const { members } = await locker.fleet.members();
      expect([...members].sort()).toEqual(one.urls.map((url) => new URL(url).host).sort());
      await using lease = await locker.acquire("r");
      expect(lease.held).toBe(true);
      expect(await locker.fleet.doctor()).toContainEqual(expect.objectContaining({ code: "members" }));
    }
  });

  test("that is closed rejects waiting calls, ends and releases its leases, and refuses every later call", async ({ shared, eye }) => {
    const holder = shared();
    const closing = shared();
    await holder.acquire("held");
    const lease = await closing.acquire("mine", { renew: true });
    const waiting = failure(closing.acquire("held", { waitMs: 60_000 }));
    const behind = failure(closing.acquire("held", { waitMs: 60_000 }));
    await expect.poll(() => eye.holders("mine")).not.toContain(null);
    const closed = closing.close();
    expect(closing.close()).toBe(closed);
    await closed;
    expect(await waiting).toMatchObject({ code: "LOCK_ABORTED" });
    expect(await behind).toMatchObject({ code: "LOCK_ABORTED" });
    expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "closed" });
    await eye.gone("mine");
    for (const call of [
      closing.acquire("x"),
      closing.tryAcquire("x"),
      closing.inspect("x"),
      closing.fleet.issued("x", 7),
      closing.ready(),
      closing.fleet.doctor(),
    ]) {
      await expect(call).rejects.toMatchObject({ code: "LOCK_ABORTED" });
    }
    await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
    await lease.release();
  });

  test("can be closed before it has met anybody", async ({ shared }) => {
    const locker = shared();
    const asked = failure(locker.acquire("r"));
    await locker.close();
    expect(await asked).toMatchObject({ code: "LOCK_ABORTED" });
  });
});

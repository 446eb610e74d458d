// The fake of @palisade/lock/testing, held against the real lock: one suite is run over both. And
// what only the fake can do: its time is that of fake timers.
import { setTimeout as sleep } from "node:timers/promises";
import { type Lease, LockError, type Locker, type LockerOptions } from "@palisade/lock";
import { createFakeLocker, FakeServers } from "@palisade/lock/testing";
import { vi } from "vitest";
import { aborted, test as base, describe, expect, failure, timed, until } from "./lock-test.js";

type Options = Omit<Partial<LockerOptions>, "nodes">;

const test = base.extend("lockers", ({ shared, task: _task }, { onCleanup }) => {
  const servers = new FakeServers();
  const opened: Locker[] = [];
  onCleanup(async () => {
    await Promise.all(opened.map((locker) => locker.close()));
  });
  return (kind: "real" | "fake") =>
    (options: Options = {}): Locker => {
      if (kind === "real") return shared(options);
      const locker = createFakeLocker({ servers, ...options });
      opened.push(locker);
      return locker;
    };
});

describe.each(["real", "fake"] as const)("the %s lock", (kind) => {
  test("T1 gives tokens that rise, for one resource and for several", async ({ lockers }) => {
    const open = lockers(kind);
    const all = [open(), open()];
    const tokens: number[] = [];
    for (let i = 0; i < 6; i++) {
      const lease = await (all[i % 2] as Locker).acquire(i % 3 === 0 ? ["b", "a"] : "a");
      tokens.push(lease.token);
      expect((await lease.release()).outcome).toBe("free");
    }
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
    expect(await open().fleet.issued("a", tokens[5] ?? 0)).toBe(true);
    expect(await open().fleet.issued("a", (tokens[5] ?? 0) + 1_000_000)).toBe(false);
  });

  test("L2 says who holds it to who does not wait, and to who gives up", async ({ lockers }) => {
    const open = lockers(kind);
    const [holder, other] = [open({ label: "worker-7" }), open()];
    const lease = await holder.acquire(["a", "b"]);
    const tried = await other.tryAcquire("b");
    expect(tried).toMatchObject({ ok: false, reason: "held", message: expect.stringMatching(/held for \d+ ms more by worker-7/) });
    expect(await failure(other.acquire("a", { waitMs: 50 }))).toMatchObject({ code: "LOCK_HELD", resource: "a" });
    expect((await other.tryAcquire(["b", "c"])).ok).toBe(false);
    expect((await other.tryAcquire("c")).ok).toBe(true);
    await lease.release();
    expect((await other.tryAcquire("b")).ok).toBe(true);
  });

  test("W1 hands over to who waits, in a process in the order of the calls", async ({ lockers }) => {
    const open = lockers(kind);
    const [one, other] = [open(), open({ retry: { minDelayMs: 20_000, maxDelayMs: 60_000 }, waitMs: 30_000 })];
    const lease = await one.acquire("r", { ttlMs: 30_000 });
    const order: number[] = [];
    const waiting = [1, 2, 3].map((i) => other.using("r", () => void order.push(i)));
    await sleep(100);
    expect(order).toEqual([]);
    await lease.release();
    expect((await timed(() => Promise.all(waiting))).tookMs).toBeLessThan(5_000);
    expect(order).toEqual([1, 2, 3]);
  });

  test("W1 gives several resources to who waits for them beside users of each", async ({ lockers }) => {
    const open = lockers(kind);
    let isDone = false;
    const loops = ["a", "a", "b", "b"].map(async (resource) => {
      const locker = open();
      while (!isDone) await locker.using(resource, { waitMs: 30_000 }, () => sleep(3));
    });
    const locker = open();
    for (let i = 0; i < 3; i++) await locker.using(["a", "b"], { waitMs: 30_000 }, () => sleep(3));
    isDone = true;
    await Promise.all(loops);
  });

  test("L1 ends a lease that is not renewed, and tells its holder", async ({ lockers }) => {
    const open = lockers(kind);
    const [one, other] = [open(), open()];
    const lease = await one.acquire("r", { ttlMs: 500 });
    const next = other.acquire("r", { waitMs: 20_000 });
    await aborted(lease.signal);
    expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "expired" });
    expect(() => lease.assertHeld()).toThrow(LockError);
    expect((await next).token).toBeGreaterThan(lease.token);
  });

  test("renews and extends, and loses what was taken away", async ({ lockers }) => {
    const open = lockers(kind);
    const [one, other] = [open(), open()];
    const result = await one.using("r", { ttlMs: 800 }, async (lease) => {
      await sleep(1_000);
      lease.assertHeld();
      expect((await lease.extend(9_000)).remainingMs).toBeGreaterThan(5_000);
      return lease.token;
    });
    const lease = await one.acquire("r", { ttlMs: 9_000 });
    expect(lease.token).toBeGreaterThan(result);
    const { fence, removed } = await other.fleet.forceRelease("r", { reason: "a test" });
    expect(removed).toHaveLength(1);
    expect(fence).toBeGreaterThan(lease.token);
    expect(await failure(lease.extend())).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect((await other.acquire("r")).token).toBeGreaterThan(fence);
  });

  test("inspects, lists, marks and remembers the highest token", async ({ lockers }) => {
    const open = lockers(kind);
    const locker = open({ label: "me" });
    const lease = await locker.acquire("r");
    expect(await locker.inspect("r")).toMatchObject({ state: "held", holder: "me", token: lease.token });
    expect(await locker.leader("r")).toMatchObject({ label: "me" });
    expect(await locker.fleet.listResources()).toEqual(["r"]);
    expect(await locker.fleet.highestToken("r")).toBeGreaterThanOrEqual(lease.token);
    expect([await locker.fleet.mark("m", 7), await locker.fleet.mark("m", 3), await locker.fleet.mark("m", 0)]).toEqual([7, 7, 7]);
    expect((await locker.ready()).unreachable).toEqual([]);
    expect((await locker.fleet.doctor()).filter(({ severity }) => severity === "error")).toEqual([]);
  });

  test("gives up by signal, and ends what it has when it is closed", async ({ lockers }) => {
    const open = lockers(kind);
    const [one, other] = [open(), open()];
    const lease = await one.acquire("r");
    const aborter = new AbortController();
    const waiting = failure(other.acquire("r", { signal: aborter.signal, waitMs: 30_000 }));
    const closing = failure(other.acquire("r", { waitMs: 30_000 }));
    aborter.abort("enough");
    expect(await waiting).toMatchObject({ code: "LOCK_ABORTED", cause: "enough" });
    const mine = await other.acquire("s");
    await other.close();
    expect(await closing).toMatchObject({ code: "LOCK_ABORTED" });
    expect(mine.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "closed" });
    await lease.release();
    expect((await one.tryAcquire(["r", "s"])).ok).toBe(true);
  });

  test("elects a leader, and another when it resigns", async ({ lockers }) => {
    const open = lockers(kind);
    const leading: Lease["token"][] = [];
    const campaigns = [open(), open()].map((locker) =>
      locker.campaign("r", async ({ token, signal }) => {
        leading.push(token);
        await aborted(signal);
      }),
    );
    await until(() => leading.length === 1, "one leads");
    expect(campaigns.filter(({ term }) => term !== undefined)).toHaveLength(1);
    await Promise.all(campaigns.map((campaign) => campaign.resign()));
    await until(() => leading.length === 2, "another leads");
    expect(leading[1]).toBeGreaterThan(leading[0] ?? 0);
    await Promise.all(campaigns.map((campaign) => campaign.stop()));
  });

  test("refuses what cannot be right", async ({ lockers }) => {
    const locker = lockers(kind)();
    for (const ttlMs of [0, Number.NaN, 60_001]) await expect(locker.acquire("r", { ttlMs })).rejects.toThrow(RangeError);
    await expect(locker.acquire("")).rejects.toThrow();
    await expect(locker.using("r", undefined as never)).rejects.toThrow(TypeError);
  });
});

describe("only the fake", () => {
  base("L1 goes by fake timers: a lease ends, is renewed and is waited for in their time", async () => {
    vi.useFakeTimers();
    try {
      const servers = new FakeServers();
      const [one, other] = [createFakeLocker({ servers }), createFakeLocker({ servers })];
      const renewed = await one.acquire("renewed", { renew: true });
      const lease = await one.acquire("r", { ttlMs: 10_000 });
      const next = other.acquire("r", { waitMs: 20_000 });
      await vi.advanceTimersByTimeAsync(9_000);
      expect(lease.held).toBe(true);
      await vi.advanceTimersByTimeAsync(2_000);
      expect([lease.held, renewed.held]).toEqual([false, true]);
      expect((await next).token).toBeGreaterThan(lease.token);
      await vi.advanceTimersByTimeAsync(3_600_000);
      expect(renewed.held).toBe(true);
      servers.lose("renewed");
      await vi.advanceTimersByTimeAsync(5_000);
      expect(renewed.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
      await Promise.all([one.close(), other.close()]);
    } finally {
      vi.useRealTimers();
    }
  });

  base("W1 hands over although a framework has faked microtasks as well, as some do by default", async () => {
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout", "queueMicrotask"] });
    try {
      const servers = new FakeServers();
      const [one, other] = [createFakeLocker({ servers }), createFakeLocker({ servers })];
      const lease = await one.acquire("r");
      const next = other.acquire("r", { waitMs: 20_000 });
      let isOurs = false;
      next.then(() => {
        isOurs = true;
      });
      for (let turn = 0; turn < 100; turn++) await Promise.resolve();
      await lease.release();
      for (let turn = 0; turn < 100 && !isOurs; turn++) await Promise.resolve();
      expect(isOurs).toBe(true);
      await Promise.all([one.close(), other.close()]);
    } finally {
      vi.useRealTimers();
    }
  });

  base("fails as when no server can be reached, and goes on when one can", async () => {
    const servers = new FakeServers();
    await using locker = createFakeLocker({ servers });
    servers.reachable = false;
    expect(await locker.tryAcquire("r")).toMatchObject({ ok: false, reason: "no_quorum" });
    servers.reachable = true;
    expect((await locker.tryAcquire("r")).ok).toBe(true);
  });
});

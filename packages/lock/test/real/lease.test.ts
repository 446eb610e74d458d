// A lease on healthy fleets: taken, extended, lost to the clock, given back. Deadlines and renewals are told
// in simulated time (unit/lease/kept.test.ts).
import { LockError, MAX_TOKEN } from "@palisade/lock";
import { describe, expect, failure, fleetHolders, test } from "./lock-test.js";

describe("a lease", () => {
  test("is stored as owner and label, with a time to live, on every node", async ({ shared, eye }) => {
    const locker = shared({ label: "worker-7" });
    const lease = await locker.acquire("orders/42", { ttlMs: 50_000 });
    expect(lease.resource).toBe("orders/42");
    expect(lease.resources).toEqual(["orders/42"]);
    expect(lease.held).toBe(true);
    expect(lease.remainingMs()).toBeGreaterThan(40_000);
    expect(lease.remainingMs()).toBeLessThanOrEqual(50_000 - 502);
    await expect.poll(() => eye.holders("orders/42")).toEqual(Array(5).fill(expect.stringMatching(/^[\w-]{22}\|worker-7$/)));
    expect((await lease.release()).outcome).toBe("free");
    await eye.gone("orders/42");
    expect(lease.held).toBe(false);
    expect(lease.remainingMs()).toBe(0);
  });

  test("T1 token is written in digits on every node, never as 1.79e+15", async ({ locker, eye }) => {
    const lease = await locker.acquire("r");
    expect(lease.token).toBeGreaterThan(1_000_000_000_000);
    expect(lease.token).toBeLessThanOrEqual(MAX_TOKEN);
    await expect.poll(() => eye.tokens("r")).toEqual(Array(5).fill(String(lease.token)));
  });

  test("is released once, however often it is asked to be", async ({ locker }) => {
    const lease = await locker.acquire("r");
    const first = lease.release();
    expect(lease.release()).toBe(first);
    await first;
    const other = await locker.acquire("r");
    await lease.release();
    await lease[Symbol.asyncDispose]();
    other.assertHeld();
    expect((await locker.tryAcquire("r")).ok).toBe(false);
  });

  test("T2 keeps its own token when another holder has come", async ({ locker }) => {
    const old = await locker.acquire("r");
    const { token } = old;
    await old.release();
    const next = await locker.acquire("r");
    expect(old.token).toBe(token);
    expect(next.token).toBeGreaterThan(token);
    expect(() => old.assertHeld()).toThrow(LockError);
  });
});

describe("several resources in one lease", () => {
  test("are taken all or none", async ({ locker, eye }) => {
    const b = await locker.acquire("b");
    const attempt = await locker.tryAcquire(["a", "b", "c"]);
    expect(attempt).toMatchObject({
      ok: false,
      reason: "held",
      message: expect.stringMatching(/held for \d+ ms more by .*, who has b/),
    });
    await eye.gone("a");
    await eye.gone("c");
    await b.release();
    const all = await locker.acquire(["c", "a", "b"]);
    expect(all.resources).toEqual(["c", "a", "b"]);
    expect(all.resource).toBe("c");
    expect((await locker.tryAcquire("a")).ok).toBe(false);
  });
});

describe("a held resource", () => {
  test("is LOCK_HELD, by whom and for how long", async ({ shared, eye }) => {
    const holder = shared({ label: "worker-7" });
    const other = shared();
    await holder.acquire("orders/42", { ttlMs: 50_000 });
    await expect.poll(() => eye.holders("orders/42")).not.toContain(null);
    const error = await failure(other.acquire("orders/42", { waitMs: 0 }));
    expect(error).toBeInstanceOf(LockError);
    expect(error).toMatchObject({ code: "LOCK_HELD", resource: "orders/42", resources: ["orders/42"] });
    expect((error as LockError).message).toMatch(
      /^orders\/42 is held by worker-7 for [45]\d\.\d s more \([3-5] of 5 nodes\); 0 of 5 nodes granted orders\/42, 3 needed; .*held for [45]\d{4} ms more by worker-7/,
    );
    expect((error as LockError).retryAfterMs).toBeGreaterThan(40_000);
    expect((error as LockError).ballots.length).toBeGreaterThanOrEqual(3);
  });

  test("says when this very process holds it, and when only the label is the same", async ({ shared, eye }) => {
    await shared().acquire("orders/own", { ttlMs: 50_000 });
    await shared({ label: "worker-7" }).acquire("orders/alike", { ttlMs: 50_000 });
    for (const name of ["orders/own", "orders/alike"]) await expect.poll(() => eye.holders(name)).not.toContain(null);
    await expect(shared().acquire("orders/own", { waitMs: 0 })).rejects.toThrow(
      new RegExp(`held for \\d+ ms more by \\S+:${process.pid}, which is this very process`),
    );
    const alike = shared({ label: "worker-7" }).acquire("orders/alike", { waitMs: 0 });
    await expect(alike).rejects.toThrow(/held for \d+ ms more by worker-7, which is also the label of this locker/);
  });
});

describe.for([1, 2, 4])("a fleet of %i", (size) => {
  test("grants, refuses, extends, releases", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: size });
    const locker = open({ nodes: urls, label: "one" });
    await locker.ready();
    const attempt = await locker.tryAcquire("r");
    if (!attempt.ok) throw new Error(attempt.message);
    expect(attempt.ballots.filter(({ kind }) => kind === "granted").length).toBeGreaterThanOrEqual(Math.floor(size / 2) + 1);
    expect((await locker.tryAcquire("r")).ok).toBe(false);
    expect((await attempt.lease.extend(9_000)).outcome).toBe("renewed");
    expect((await attempt.lease.release()).outcome).toBe("free");
    const again = await locker.acquire("r");
    expect(again.token).toBeGreaterThan(attempt.lease.token);
    await again.release();
    await expect.poll(() => fleetHolders({ nodes } as never, "r")).toEqual(Array(size).fill(null));
  });
});

test("a quorum stricter than the majority is kept", async ({ fleet, open }) => {
  const { urls, nodes } = await fleet({ nodes: 3 });
  const strict = open({ nodes: urls, quorum: 3 });
  await (await strict.acquire("r")).release();
  await nodes[0]?.kill();
  const error = await failure(strict.acquire("r", { waitMs: 0 }));
  expect(error).toMatchObject({ code: "LOCK_NO_QUORUM" });
  const lax = open({ nodes: urls });
  expect((await lax.acquire("r")).held).toBe(true);
});

/** Stops the event loop, as a long garbage collection does. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe("the end of a lease", () => {
  test("L1 is noticed by assertHeld after a stall of the event loop, before any timer had its turn", async ({ locker }) => {
    const lease = await locker.acquire("r", { ttlMs: 400 });
    const { signal } = lease;
    lease.assertHeld();
    stall(lease.remainingMs() + 10);
    expect(signal.aborted).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LockError);
    expect(signal.aborted).toBe(true);
  });

  test("comes with its release: the signal aborts, and says so", async ({ locker }) => {
    const lease = await locker.acquire("r");
    const { signal } = lease;
    await lease.release();
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "released" });
  });

  test("cannot be announced to what is no function, and says so at once", async ({ locker }) => {
    const lease = await locker.acquire("r");
    expect(() => lease.onDanger(7 as unknown as () => void)).toThrow(TypeError);
  });
});

describe("extend", () => {
  test("prolongs the lease by another ttl, and keeps the token", async ({ locker }) => {
    const lease = await locker.acquire("r", { ttlMs: 5_000 });
    const { token } = lease;
    const renewal = await lease.extend(50_000);
    expect(renewal.outcome).toBe("renewed");
    expect(renewal.remainingMs).toBeGreaterThan(40_000);
    expect(lease.remainingMs()).toBeGreaterThan(40_000);
    expect(lease.token).toBe(token);
    expect((await locker.inspect("r")).remainingMs).toBeGreaterThan(40_000);
  });

  test("asked for twice at once is done one after the other, and the last word counts", async ({ locker }) => {
    const lease = await locker.acquire("r");
    await Promise.all([lease.extend(20_000), lease.extend(5_000)]);
    expect(lease.remainingMs()).toBeLessThan(5_000);
  });

  test("with a ttl that cannot be is a RangeError, and leaves the lease as it was", async ({ locker }) => {
    const lease = await locker.acquire("r");
    for (const ttlMs of [0, -1, Number.NaN, 60_001]) await expect(lease.extend(ttlMs)).rejects.toThrow(RangeError);
    lease.assertHeld();
  });
});

describe("using", () => {
  test("gives the routine's own error, whatever becomes of the release", async ({ own }) => {
    const { nodes, locker } = await own(3, { nodeTimeoutMs: 50 });
    const mine = new Error("mine");
    const error = await failure(
      locker.using("r", async () => {
        await Promise.all(nodes.map((node) => node.kill()));
        throw mine;
      }),
    );
    expect(error).toBe(mine);
  });

  test("gives the result of a routine that released its lease itself", async ({ locker }) => {
    const released = locker.using("r", async (lease) => {
      await lease.release();
      return "released";
    });
    expect(await released).toBe("released");
  });

  test("takes routines that do not return promises, and refuses what is no routine", async ({ locker }) => {
    expect(await locker.using("r", () => 7)).toBe(7);
    await expect(locker.using("r", undefined as never)).rejects.toThrow(TypeError);
  });

  test("a scope gives its lease back at its end, and keeps its own error", async ({ locker, eye }) => {
    const error = await failure(
      (async () => {
        await using lease = await locker.acquire("r");
        lease.assertHeld();
        throw new Error("mine");
      })(),
    );
    expect(error).toMatchObject({ message: "mine" });
    await eye.gone("r");
  });
});

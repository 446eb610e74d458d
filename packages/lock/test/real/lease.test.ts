// Keeping a lease and losing it on real nodes, with real timers. Deadlines and renewals are told in
// simulated time (unit/lease/kept.test.ts).
import { setTimeout as sleep } from "node:timers/promises";
import { LockError, type RenewalEvent } from "@palisade/lock";
import { aborted, describe, expect, failure, listen, test } from "./lock-test.js";

/** Stops the event loop, as a long garbage collection does. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * Whether a timer that is set now has gone off. On a busy machine all timers are late, but they
 * keep their order: this one against the lease's own. Set at the beginning of a turn of the event
 * loop, since timers count from there.
 */
async function referenceTimer(ms: number): Promise<() => boolean> {
  await new Promise((resolve) => setImmediate(resolve));
  let isOver = false;
  setTimeout(() => {
    isOver = true;
  }, ms).unref();
  return () => isOver;
}

describe("the end of a lease", () => {
  test("L1 aborts its signal before the time of the keys is over, without a reply from any node", async ({ shared }) => {
    const locker = shared({ driftFactor: 0.2 });
    await locker.ready();
    // Keys are no older than the attempt that made them: one that a busy machine spoils is tried
    // again, with a timer of its own.
    let keysMayBeGone = await referenceTimer(200);
    let attempt = await locker.tryAcquire("r", { ttlMs: 200 });
    while (!attempt.ok) {
      keysMayBeGone = await referenceTimer(200);
      attempt = await locker.tryAcquire("r", { ttlMs: 200 });
    }
    const { lease } = attempt;
    await aborted(lease.signal);
    expect(keysMayBeGone()).toBe(false);
    expect(lease.signal.reason).toBeInstanceOf(LockError);
    expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "expired", resource: "r" });
    expect(() => lease.assertHeld()).toThrow(/ran out without a renewal/);
  });

  test("L1 is noticed by assertHeld after a stall of the event loop, before any timer had its turn", async ({ locker }) => {
    const lease = await locker.acquire("r", { ttlMs: 400 });
    const { signal } = lease;
    lease.assertHeld();
    stall(lease.remainingMs() + 10);
    expect(signal.aborted).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LockError);
    expect(signal.aborted).toBe(true);
  });

  test("L1 is noticed after a stall although the lease was to be renewed", async ({ locker }) => {
    const lease = await locker.acquire("r", { ttlMs: 200, renew: true });
    stall(210);
    expect(lease.remainingMs()).toBe(0);
    const error = await failure(lease.extend());
    expect(error).toMatchObject({ code: "LEASE_LOST" });
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

test("renewal keeps a lease beyond its ttl", async ({ locker }) => {
  using renewals = listen<RenewalEvent>("renewal", ({ resources }) => resources.includes("long"));
  const lease = await locker.acquire("long", { ttlMs: 1_200, renew: true });
  await sleep(1_500);
  lease.assertHeld();
  await lease.release();
  expect(renewals.events.length).toBeGreaterThanOrEqual(2);
  expect(renewals.events.every(({ outcome, token }) => outcome === "renewed" && token === lease.token)).toBe(true);
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

  test("with a shorter ttl shortens it", async ({ locker }) => {
    const lease = await locker.acquire("r", { ttlMs: 30_000 });
    await lease.extend(5_000);
    expect(lease.remainingMs()).toBeLessThan(5_000);
  });

  test("never re-creates a key that was lost on a quorum: the lease is lost, and what is left of it is given back", async ({
    locker,
    eye,
  }) => {
    const lease = await locker.acquire("r");
    const { signal } = lease;
    await expect.poll(() => eye.holders("r")).not.toContain(null);
    await eye.remove("r", [0, 2, 4]);
    const error = await failure(lease.extend());
    expect(error).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(signal.aborted).toBe(true);
    await eye.gone("r");
  });

  test("of a lease that another owner took by now is LEASE_LOST and leaves the other alone", async ({ locker, eye }) => {
    const lease = await locker.acquire("r");
    await expect.poll(() => eye.holders("r")).not.toContain(null);
    await eye.plant("r", [1, 2, 3], 60_000);
    await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect((await eye.holders("r")).filter((holder) => holder?.startsWith("stranger"))).toHaveLength(3);
  });

  test("plants the key again on a node that lost it, once a quorum has confirmed the owner", async ({ locker, eye }) => {
    const lease = await locker.acquire("r");
    await expect.poll(() => eye.holders("r")).not.toContain(null);
    const [holder] = await eye.holders("r");
    await eye.remove("r", [1, 3]);
    expect((await lease.extend()).outcome).toBe("renewed");
    await expect.poll(() => eye.holders("r")).toEqual(Array(5).fill(holder));
    await expect.poll(() => eye.tokens("r")).toEqual(Array(5).fill(String(lease.token)));
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

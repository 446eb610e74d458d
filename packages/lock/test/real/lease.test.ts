import { LockError } from "@palisade/lock";
import { describe, expect, failure, test } from "./lock-test.js";

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

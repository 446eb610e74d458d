// Keeping a lease and losing it: deadlines, renewals, extensions, hand-over.
import { setTimeout as sleep } from "node:timers/promises";
import { LockError, type RenewalEvent } from "@palisade/lock";
import { aborted, describe, expect, failure, fleetHolders, listen, test, timed, untilSeenEnding } from "./lock-test.js";

/** What is told of the renewals of one resource. */
const renewalsOf = (resource: string) => listen<RenewalEvent>("renewal", ({ resources }) => resources.includes(resource));

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
    const lease = await locker.acquire("r", { ttlMs: 1_000 });
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

  test("is already there when the signal is first asked for afterwards", async ({ locker }) => {
    const lease = await locker.acquire("r", { ttlMs: 200 });
    await sleep(210);
    expect(lease.signal.aborted).toBe(true);
  });

  test("is announced once, when a quarter of the time is left", async ({ locker }) => {
    const warnings: number[] = [];
    const silenced: number[] = [];
    await untilSeenEnding(async () => {
      const lease = await locker.acquire("r", { ttlMs: 1_200 });
      warnings.length = 0;
      lease.onDanger((remainingMs) => warnings.push(remainingMs));
      lease.onDanger((remainingMs) => silenced.push(remainingMs))();
      return lease;
    });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toBeLessThanOrEqual(300);
    expect(warnings[0]).toBeGreaterThan(0);
    expect(silenced).toEqual([]);
  });

  test("cannot be announced to what is no function, and says so at once", async ({ locker }) => {
    const lease = await locker.acquire("r");
    expect(() => lease.onDanger(7 as unknown as () => void)).toThrow(TypeError);
  });
});

// They wait more than they do, so they wait together.
describe.concurrent("renewal", () => {
  test("keeps a lease beyond its ttl, a few times per ttl and not in a hot loop", async ({ locker }) => {
    const ttlMs = 4_000;
    using renewals = renewalsOf("long");
    const { events } = renewals;
    const before = performance.now();
    const lease = await locker.acquire("long", { ttlMs, renew: true });
    await sleep(1.5 * ttlMs);
    lease.assertHeld();
    await lease.release();
    expect(events.length).toBeGreaterThanOrEqual(2);
    expect(events.length).toBeLessThanOrEqual((7 * (performance.now() - before)) / ttlMs);
    expect(events.every(({ outcome, token }) => outcome === "renewed" && token === lease.token)).toBe(true);
  });

  test("of the shortest ttl does not become a hot loop", async ({ shared }) => {
    using renewals = renewalsOf("short");
    // A busy machine needs many attempts to take it in time, so they follow each other closely.
    const locker = shared({ retry: { maxDelayMs: 4 }, waitMs: 25_000 });
    await locker.ready();
    const lease = await locker.acquire("short", { ttlMs: 12, renew: true });
    const acquiredAt = performance.now();
    await sleep(100);
    await lease.release();
    expect(renewals.events.length).toBeLessThanOrEqual(1 + (performance.now() - acquiredAt) / 5);
  });

  test("ends with maxHoldMs, and the keys with it", async ({ locker, eye }) => {
    await locker.ready();
    using renewals = renewalsOf("capped");
    const before = performance.now();
    const lease = await locker.acquire("capped", { ttlMs: 5_000, renew: true, maxHoldMs: 5_600 });
    const holdIsOver = await referenceTimer(5_700);
    await aborted(lease.signal);
    expect(holdIsOver()).toBe(false);
    expect(performance.now() - before).toBeGreaterThan(5_550);
    expect(lease.signal.reason).toMatchObject({ reason: "expired" });
    expect(renewals.events.length).toBeLessThanOrEqual(3);
    await eye.gone("capped");
  });

  test("stops with the release", async ({ locker }) => {
    using renewals = renewalsOf("stopped");
    const lease = await locker.acquire("stopped", { ttlMs: 200, renew: true });
    await lease.release();
    await sleep(100);
    expect(renewals.events).toEqual([]);
  });
});

describe.concurrent("using", () => {
  test("renews the lease while the routine runs, releases it, and gives the routine's result", async ({ locker, eye }) => {
    const result = await locker.using("r", { ttlMs: 3_500 }, async (lease) => {
      await sleep(4_000);
      lease.assertHeld();
      return lease.token;
    });
    expect(result).toBeGreaterThan(0);
    await eye.gone("r");
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

  test("L1 rejects with LEASE_LOST in place of the result of a routine whose lease was lost", async ({ locker, eye }) => {
    const work = locker.using("r", { ttlMs: 4_000 }, async (lease) => {
      await expect.poll(() => eye.holders("r")).not.toContain(null);
      await eye.remove("r", [0, 1, 2, 3, 4]);
      await aborted(lease.signal);
      return "done";
    });
    expect(await failure(work)).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
  });

  test("gives the result of a routine that released its lease itself, or handed it over", async ({ locker }) => {
    const released = locker.using("r", async (lease) => {
      await lease.release();
      return "released";
    });
    expect(await released).toBe("released");
    const handedOver = locker.using("s", { ttlMs: 1_000 }, async (lease) => {
      lease.serialize();
      await aborted(lease.signal);
      return "handed over";
    });
    expect(await handedOver).toBe("handed over");
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

describe("a lease handed to another process", () => {
  test("is the same lease there: same token, extended and released from there", async ({ shared, locker, eye }) => {
    const lease = await locker.acquire(["a", "b"], { ttlMs: 50_000 });
    const text = lease.serialize();
    const other = shared();
    const adopted = await other.adopt(text, { renew: true });
    expect(adopted.token).toBe(lease.token);
    expect(adopted.resources).toEqual(["a", "b"]);
    expect(adopted.remainingMs()).toBeGreaterThan(40_000);
    await lease[Symbol.asyncDispose]();
    adopted.assertHeld();
    expect((await adopted.extend()).outcome).toBe("renewed");
    await adopted.release();
    await eye.gone("a");
    await eye.gone("b");
  });

  test("L2 has one holder, however many adopt its text, and however often", async ({ shared, locker, eye }) => {
    const lockers = [locker, shared(), shared(), shared()];
    await Promise.all(lockers.map((each) => each.ready()));
    for (let i = 0; i < 10; i++) {
      const lease = await locker.acquire("r", { ttlMs: 20_000 });
      const text = lease.serialize();
      const adoptions = await Promise.allSettled(lockers.map((each) => each.adopt(text)));
      const adopted = adoptions.flatMap((adoption) => (adoption.status === "fulfilled" ? [adoption.value] : []));
      const refused = adoptions.flatMap((adoption) => (adoption.status === "rejected" ? [adoption.reason] : []));
      expect(adopted.length).toBeLessThanOrEqual(1);
      for (const error of refused) expect(error).toMatchObject({ code: expect.stringMatching(/^(LEASE_LOST|LOCK_NO_QUORUM)$/) });
      if (adopted.length > 0) expect(await failure(locker.adopt(text))).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
      for (const held of [...adopted, lease]) await held.release();
      await eye.gone("r");
    }
  });

  test("L2 is refused to the second who adopts its text, and says why", async ({ shared, locker }) => {
    const text = (await locker.acquire("r")).serialize();
    const adopted = await shared({ label: "the first" }).adopt(text);
    const error = await failure(locker.adopt(text));
    expect(error).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(error).toHaveProperty(
      "message",
      expect.stringMatching(/was not adopted: it has ended, or its text was adopted before, which works once; .*by the first/),
    );
    expect((await adopted.extend()).outcome).toBe("renewed");
  });

  test("L2 has ended for the one who gave it away, who can neither extend nor release what was adopted", async ({
    shared,
    locker,
    eye,
  }) => {
    const lease = await locker.acquire("r");
    const { signal } = lease;
    const text = lease.serialize();
    expect([lease.held, lease.remainingMs(), signal.aborted]).toEqual([false, 0, true]);
    expect(signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "handed_over" });
    const adopted = await shared().adopt(text);
    expect(await failure(lease.extend())).toMatchObject({ code: "LEASE_LOST", reason: "handed_over" });
    await lease.release();
    expect((await eye.holders("r")).every((holder) => holder !== null)).toBe(true);
    adopted.assertHeld();
    const again = await locker.adopt(adopted.serialize());
    expect(again.token).toBe(lease.token);
  });

  test("still wakes who waits for it, and leaves nothing on a node that was away when it was adopted", async ({ own, open }) => {
    const { running, nodes, locker } = await own(3, { nodeTimeoutMs: 300 });
    await locker.ready();
    const text = (await locker.acquire("r", { ttlMs: 30_000 })).serialize();
    const other = open({ nodes: running.urls, nodeTimeoutMs: 300, retry: { minDelayMs: 20_000, maxDelayMs: 60_000 } });
    await other.ready();
    await expect.poll(() => fleetHolders(running, "r")).not.toContain(null);
    const waiting = other.acquire("r", { waitMs: 20_000 });
    await expect.poll(async () => (await fleetHolders(running, "r")).every((value) => String(value).endsWith("\n"))).toBe(true);
    await nodes[2]?.pause();
    const adopted = await locker.adopt(text);
    await nodes[2]?.resume();
    const { tookMs } = await timed(async () => {
      await adopted.release();
      await (await waiting).release();
    });
    expect(tookMs).toBeLessThan(1_800);
    await expect.poll(() => fleetHolders(running, "r")).toEqual([null, null, null]);
  });

  test("that too few nodes confirmed can be adopted when they are back", async ({ own }) => {
    const { nodes, locker } = await own(3, { nodeTimeoutMs: 300 });
    await locker.ready();
    const text = (await locker.acquire("r", { ttlMs: 30_000, waitMs: 5_000 })).serialize();
    await Promise.all([nodes[1]?.pause(), nodes[2]?.pause()]);
    expect(await failure(locker.adopt(text))).toMatchObject({ code: "LOCK_NO_QUORUM" });
    await Promise.all([nodes[1]?.resume(), nodes[2]?.resume()]);
    await expect
      .poll(
        () =>
          locker.adopt(text).then(
            ({ held }) => held,
            () => false,
          ),
        { timeout: 10_000 },
      )
      .toBe(true);
  });

  test("outlives the locker that gave it away", async ({ shared }) => {
    const first = shared();
    const text = (await first.acquire("r")).serialize();
    await first.close();
    const second = shared();
    expect((await second.adopt(text)).held).toBe(true);
  });

  test("that was released meanwhile is not adopted", async ({ locker }) => {
    const lease = await locker.acquire("r");
    const text = lease.serialize();
    await lease.release();
    await expect(locker.adopt(text)).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
  });

  test("in a text that is not one of ours is refused before any I/O, without quoting it", async ({ locker, redis, open }) => {
    const lease = await locker.acquire("r");
    const text = lease.serialize();
    for (const bad of [
      "",
      "{}",
      "null",
      "[]",
      text.slice(1),
      text.replace('"palisade":1', '"palisade":2'),
      text.replace('"owner"', '"owned"'),
      7 as never,
    ]) {
      const error = await failure(locker.adopt(bad));
      expect(error).toBeInstanceOf(TypeError);
    }
    const elsewhere = open({ nodes: redis.urls, namespace: `${redis.namespace}x` });
    await expect(elsewhere.adopt(text)).rejects.toThrow(RangeError);
  });
});

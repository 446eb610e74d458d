// The process around the lock: fake timers of a test framework, worker threads, a locker that is closed
// at any moment.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type AttemptEvent, channelNames, type Lease } from "@palisade/lock";
import { vi } from "vitest";
import { describe, expect, fleetHolders, test, until } from "./lock-test.js";

test("fake timers do not reach the lock: it waits, renews and ends its leases in the time of its servers", async ({ shared, eye }) => {
  vi.useFakeTimers({ now: 0 });
  try {
    const locker = shared();
    const other = shared();
    const lease = await locker.acquire("r", { ttlMs: 500 });
    vi.advanceTimersByTime(3_600_000);
    vi.setSystemTime(4_000_000_000_000);
    lease.assertHeld();
    const next = await other.acquire("r", { waitMs: 10_000 });
    expect(lease.signal.aborted).toBe(true);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  } finally {
    vi.useRealTimers();
  }
  await eye.gone("r");
});

test("a worker thread takes a lease, gives it back, and ends by itself", async ({ redis, locker }) => {
  const worker = new Worker(new URL("../../.build/test/real/child.js", import.meta.url), {
    workerData: { does: "end", nodes: redis.urls, namespace: redis.namespace },
  });
  const ended = once(worker, "exit");
  const [token] = (await once(worker, "message")) as [number];
  expect(await ended).toEqual([0]);
  expect((await locker.acquire("r", { waitMs: 0 })).token).toBeGreaterThan(token);
});

// Closing at every moment of an acquisition leaves nothing on any node, and no lease.
/** Calls back so many microtasks from now. */
function inMicrotasks(count: number, run: () => void): void {
  if (count === 0) run();
  else queueMicrotask(() => inMicrotasks(count - 1, run));
}

describe("a locker that is closed", () => {
  test("at any moment between the winning vote and the caller's next step leaves no lease behind", async ({ fleet, open }) => {
    // Of one node, so that the attempt is told of in the very turn in which it is won.
    const started = await fleet({ nodes: 1 });
    for (let count = 0; count < 14; count++) {
      const locker = open({ nodes: started.urls });
      await locker.ready();
      let closing: Promise<void> | undefined;
      const onAttempt = (event: unknown): void => {
        if ((event as AttemptEvent).outcome === "won") inMicrotasks(count, () => (closing ??= locker.close()));
      };
      subscribe(channelNames.attempt, onAttempt);
      const outcome = await locker.acquire("r").catch((error: unknown) => error);
      await until(() => closing !== undefined, "the locker is closing");
      await closing;
      unsubscribe(channelNames.attempt, onAttempt);
      if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "LOCK_ABORTED" });
      else expect((outcome as Lease).held).toBe(false);
      expect(await fleetHolders(started, "r")).toEqual([null]);
    }
  });
});

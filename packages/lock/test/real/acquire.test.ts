// Taking and giving back, on healthy fleets of every size.
import { type AttemptEvent, LockError, MAX_TOKEN } from "@palisade/lock";
import { describe, expect, failure, fleetHolders, listen, test } from "./lock-test.js";

describe("a lease", () => {
  test("T1 carries a higher token than every lease of the resource before it", async ({ locker }) => {
    let last = 0;
    for (let i = 0; i < 20; i++) {
      const lease = await locker.acquire("orders/42");
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      await lease.release();
    }
  });

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

  test("T1 is above the highest token that any node of its quorum stored, and stored on a quorum itself", async ({ locker, eye }) => {
    const first = await locker.acquire("r");
    await expect.poll(() => eye.tokens("r")).toEqual(Array(5).fill(String(first.token)));
    await first.release();
    await eye.gone("r");
    await Promise.all([2, 3, 4].map((i, n) => eye.store("r", i, first.token + 10 * (n + 1))));
    for (let i = 0; i < 3; i++) {
      const lease = await locker.acquire("r");
      const storing = (await eye.tokens("r")).filter((token) => Number(token) >= lease.token);
      expect(storing.length).toBeGreaterThanOrEqual(3);
      expect(lease.token).toBeGreaterThan(first.token + 10);
      await lease.release();
    }
  });

  test("of a resource of any name is that resource's alone", async ({ locker, eye }) => {
    const names = [
      "a",
      "a:b",
      "{a}",
      "a}b{c",
      "lock:a",
      "日本語",
      "👩‍🚀",
      "x".repeat(512),
      "a\nb",
      "a\u0000b",
      "|",
      "owner|label",
      "%2F",
      " ",
    ];
    const leases = await Promise.all(names.map((name) => locker.acquire(name, { ttlMs: 60_000 })));
    for (const name of names) {
      expect((await locker.tryAcquire(name)).ok).toBe(false);
      expect((await locker.inspect(name)).state).toBe("held");
    }
    await Promise.all(leases.map((lease) => lease.release()));
    for (const name of names) await eye.gone(name);
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

  test("that ran out does not take the next holder's lock with it when it is released", async ({ locker, eye }) => {
    const old = await locker.acquire("r", { ttlMs: 200 });
    const next = await locker.acquire("r");
    expect(old.held).toBe(false);
    await old.release();
    expect((await locker.inspect("r")).state).toBe("held");
    expect((await eye.holders("r")).filter((holder) => holder !== null).length).toBeGreaterThanOrEqual(3);
    next.assertHeld();
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

  test("T1 share one token, higher than any before it for each of them, and lower than any after", async ({ locker }) => {
    let highest = 0;
    for (const resource of ["a", "b", "b", "b", "a"]) {
      const lease = await locker.acquire(resource);
      highest = Math.max(highest, lease.token);
      await lease.release();
    }
    const both = await locker.acquire(["a", "b"]);
    expect(both.token).toBeGreaterThan(highest);
    await both.release();
    for (const resource of ["a", "b"]) expect((await locker.acquire(resource)).token).toBeGreaterThan(both.token);
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

  test("is a value for tryAcquire, which never waits", async ({ locker }) => {
    await locker.acquire("tried", { ttlMs: 60_000 });
    using attempts = listen<AttemptEvent>("attempt", ({ resources }) => resources[0] === "tried");
    expect(await locker.tryAcquire("tried")).toMatchObject({
      ok: false,
      reason: "held",
      retryAfterMs: expect.any(Number),
    });
    await expect.poll(() => attempts.events.filter(({ outcome }) => outcome === "held")).toHaveLength(1);
  });
});

describe.for([1, 2, 3, 4, 5])("a fleet of %i", (size) => {
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

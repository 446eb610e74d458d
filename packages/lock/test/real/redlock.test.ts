// What users of the library `redlock` rely on, as its own tests of versions 4 and 5 tell it: each
// situation is played with the library itself and with the class of this package that stands in for
// it, on the same servers.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import Palisade, {
  ExecutionError as PalisadeExecutionError,
  Lock as PalisadeLock,
  ResourceLockedError as PalisadeResourceLockedError,
} from "@palisade/lock/redlock";
import { Redis } from "ioredis";
import { test as base, describe, expect, failure } from "./lock-test.js";

// Its package.json hides its types; they are those of the class that stands in for it.
const library = createRequire(import.meta.url)("redlock") as typeof import("@palisade/lock/redlock");

const kinds = {
  "redlock 5": {
    open: (clients: Redis[], settings: object) => new library.default(clients as never[], settings),
    ExecutionError: library.ExecutionError,
    ResourceLockedError: library.ResourceLockedError,
  },
  "@palisade/lock/redlock": {
    open: (clients: Redis[], settings: object, namespace?: string) =>
      new Palisade(clients, settings, { maxTtlMs: 60_000, ...(namespace === undefined ? {} : { namespace }) }),
    ExecutionError: PalisadeExecutionError,
    ResourceLockedError: PalisadeResourceLockedError,
  },
};

/** Held for as long as any test takes. */
const LONG_MS = 50_000;
const settings = { retryCount: 3, retryDelay: 20, retryJitter: 10 };

const test = base
  .extend("clients", ({ task: _task }, { onCleanup }) => {
    const opened: Redis[] = [];
    onCleanup(() => {
      for (const client of opened) client.disconnect();
    });
    return (urls: readonly string[]) => {
      const clients = urls.map((url) => new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null }));
      for (const client of clients) client.on("error", () => {});
      opened.push(...clients);
      return clients;
    };
  })
  .extend("closers", ({ task: _task }, { onCleanup }) => {
    const closers: (() => Promise<unknown>)[] = [];
    onCleanup(async () => {
      await Promise.all(closers.map((close) => close()));
    });
    return closers;
  });

describe.each(Object.entries(kinds))("%s", (_name, { open, ...errors }) => {
  const each = test
    /** On the shared servers, and a name of this test's own. */
    .extend("redlock", ({ clients, closers, redis }) => {
      const redlock = open(clients(redis.urls), settings, redis.namespace);
      closers.push(() => redlock.quit());
      return redlock;
    })
    .extend(
      "at",
      ({ redis }) =>
        (name: string) =>
          `${redis.namespace}/${name}`,
    );

  async function isLocked(redlock: Palisade, resource: string): Promise<boolean> {
    return redlock.acquire([resource], LONG_MS, { retryCount: 0 }).then(
      async (lock) => {
        await lock.release();
        return false;
      },
      () => true,
    );
  }

  each("refuses a duration that is no whole number", async ({ redlock, at }) => {
    for (const call of [redlock.acquire([at("a")], 0.5), redlock.using([at("a")], 1_000.5, async () => {})])
      expect(await failure(call)).toMatchObject({ message: "Duration must be an integer value in milliseconds." });
  });

  each("needs a client", () => {
    expect(() => open([], {})).toThrow();
  });

  each("acquires, extends and releases one lock", async ({ redlock, at }) => {
    let lock = await redlock.acquire([at("a")], LONG_MS);
    expect(lock.resources).toEqual([at("a")]);
    expect(lock.expiration).toBeGreaterThan(Date.now() + LONG_MS / 2);
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + LONG_MS);
    const { value } = lock;
    lock = await lock.extend(LONG_MS + 5_000);
    expect(lock.expiration).toBeGreaterThan(Date.now() + LONG_MS);
    expect(lock.value).toBe(value);
    expect(await isLocked(redlock, at("a"))).toBe(true);
    await lock.release();
    expect(lock.expiration).toBe(0);
    expect(await isLocked(redlock, at("a"))).toBe(false);
  });

  each("acquires, extends and releases several resources as one lock", async ({ redlock, at }) => {
    let lock = await redlock.acquire([at("a1"), at("a2")], LONG_MS);
    lock = await lock.extend(LONG_MS);
    expect(await Promise.all([isLocked(redlock, at("a1")), isLocked(redlock, at("a2"))])).toEqual([true, true]);
    await lock.release();
    expect(await Promise.all([isLocked(redlock, at("a1")), isLocked(redlock, at("a2"))])).toEqual([false, false]);
  });

  each("gives one lock of a resource at a time, and says who voted against the other", async ({ redlock, at }) => {
    const lock = await redlock.acquire([at("c")], LONG_MS);
    const error = await failure(redlock.acquire([at("c")], LONG_MS));
    expect(error).toBeInstanceOf(errors.ExecutionError);
    const attempts = await Promise.all((error as PalisadeExecutionError).attempts);
    const last = attempts.at(-1);
    expect(last).toMatchObject({ membershipSize: 5, quorumSize: 3 });
    expect(last?.votesAgainst.size).toBeGreaterThanOrEqual(3);
    for (const [client, vote] of last?.votesAgainst ?? []) {
      expect(redlock.clients.has(client as never)).toBe(true);
      expect(vote).toBeInstanceOf(errors.ResourceLockedError);
    }
    await lock.release();
  });

  each("gives no part of several resources of which one is held", async ({ redlock, at }) => {
    const lock = await redlock.acquire([at("c1"), at("c2")], LONG_MS);
    expect(await failure(redlock.acquire([at("c2"), at("c3")], LONG_MS))).toBeInstanceOf(errors.ExecutionError);
    expect(await isLocked(redlock, at("c3"))).toBe(false);
    expect(await isLocked(redlock, at("c1"))).toBe(true);
    await lock.release();
  });

  each("lets another have a lock that was not extended, when its time is over", async ({ redlock, at }) => {
    const first = await redlock.acquire([at("d")], 200);
    const second = await redlock.acquire([at("d")], LONG_MS, { retryCount: 100 });
    expect(second.value).not.toBe(first.value);
    expect(Date.now()).toBeGreaterThanOrEqual(first.expiration);
    expect(await failure(first.extend(LONG_MS))).toBeInstanceOf(errors.ExecutionError);
    expect(await failure(first.release())).toBeInstanceOf(errors.ExecutionError);
    expect(await isLocked(redlock, at("d"))).toBe(true);
    await second.release();
  });

  each("lets another have a lock at once when it was released", async ({ redlock, at }) => {
    const first = await redlock.acquire([at("e")], LONG_MS);
    await first.release();
    const second = await redlock.acquire([at("e")], LONG_MS, { retryCount: 0 });
    await second.release();
  });

  each("refuses to release or extend a lock that was released", async ({ redlock, at }) => {
    const lock = await redlock.acquire([at("f")], LONG_MS);
    await lock.release();
    expect(await failure(lock.release())).toBeInstanceOf(errors.ExecutionError);
    expect(await failure(lock.extend(LONG_MS))).toBeInstanceOf(errors.ExecutionError);
  });

  each("using: acquires, extends for as long as it takes, releases, and passes the result on", async ({ redlock, at }) => {
    const result = await redlock.using([at("x")], 1_200, { automaticExtensionThreshold: 800 }, async (signal) => {
      await sleep(1_400);
      expect(signal).toMatchObject({ aborted: false });
      expect(signal.error).toBeUndefined();
      return isLocked(redlock, at("x"));
    });
    expect(result).toBe(true);
    expect(await isLocked(redlock, at("x"))).toBe(false);
  });

  each("using: one at a time, also where the routine throws", async ({ redlock, at }) => {
    let running = 0;
    const run = () =>
      redlock.using([at("y")], LONG_MS, { retryCount: 200 }, async () => {
        running++;
        expect(running).toBe(1);
        await sleep(30);
        running--;
        throw new Error("of the routine");
      });
    for (const error of await Promise.all([failure(run()), failure(run())])) expect(error).toMatchObject({ message: "of the routine" });
    expect(await isLocked(redlock, at("y"))).toBe(false);
  });

  each("using: refuses a duration that leaves no time to extend", async ({ redlock, at }) => {
    const error = await failure(redlock.using([at("z")], 500, { automaticExtensionThreshold: 450 }, async () => {}));
    expect((error as Error).message).toMatch(/must be at least 100 ?ms (longer|greater) than/);
  });

  each("succeeds while a minority of the clients fails, and tells of it", async ({ fleet, clients, closers }) => {
    const { nodes, urls } = await fleet({ nodes: 3 });
    const redlock = open(clients(urls), settings);
    closers.push(() => redlock.quit().catch(() => {}));
    await (await redlock.acquire(["warm-up"], LONG_MS)).release();
    const told: unknown[] = [];
    redlock.on("error", (error) => told.push(error));
    await nodes[2]?.kill();
    const lock = await redlock.acquire(["b"], LONG_MS);
    await lock.extend(LONG_MS);
    await lock.release();
    await expect.poll(() => told.length).toBeGreaterThan(0);
    expect(told[0]).toBeInstanceOf(Error);
  });

  each("fails while a majority of the clients fails, and says why of each", async ({ fleet, clients, closers }) => {
    const { nodes, urls } = await fleet({ nodes: 3 });
    const redlock = open(clients(urls), settings);
    closers.push(() => redlock.quit().catch(() => {}));
    await (await redlock.acquire(["warm-up"], LONG_MS)).release();
    await Promise.all([nodes[0]?.kill(), nodes[1]?.kill()]);
    const error = await failure(redlock.acquire(["c"], LONG_MS));
    expect(error).toBeInstanceOf(errors.ExecutionError);
    const [last] = (await Promise.all((error as PalisadeExecutionError).attempts)).reverse();
    const silent = [...(last?.votesAgainst.values() ?? [])].filter((vote) => !(vote instanceof errors.ResourceLockedError));
    expect(silent).toHaveLength(2);
  });

  each("quits the clients that it was given", async ({ clients, redis }) => {
    const given = clients(redis.urls);
    const redlock = open(given, settings, redis.namespace);
    const lock = await redlock.acquire([`${redis.namespace}/q`], 100);
    await lock.release();
    await redlock.quit();
    await expect.poll(() => given.map(({ status }) => status)).toEqual(Array(5).fill("end"));
  });
});

describe("@palisade/lock/redlock alone", () => {
  const open = kinds["@palisade/lock/redlock"].open;

  test("gives every lock a token, higher than that of every lock of the resource before it", async ({ clients, closers, redis }) => {
    const redlock = open(clients(redis.urls), settings, redis.namespace);
    closers.push(() => redlock.quit());
    const first = await redlock.acquire("one name as text", LONG_MS);
    expect(first).toBeInstanceOf(PalisadeLock);
    await first.unlock();
    await redlock.using(["one name as text"], LONG_MS, async (_signal, lock) => expect(lock.token).toBeGreaterThan(first.token));
  });

  test("says what it is that has no meaning to it, before any question", async ({ clients, redis }) => {
    expect(() => open(clients(redis.urls), { retryTimes: 3 })).toThrow(
      /Redlock has no option "retryTimes"; it has driftFactor, retryCount/,
    );
    expect(() => open(clients(redis.urls), { retryCount: "3" })).toThrow("retryCount must be a number, not string 3");
    expect(() => new Palisade(clients(redis.urls), {}, { acquireScript: "return 1" } as never)).toThrow(/no option "acquireScript"/);
  });

  test("a lock that was lost aborts the signal of using, and is an error at its end", async ({ fleet, clients, closers }) => {
    const { nodes, urls } = await fleet({ nodes: 1 });
    const redlock = open(clients(urls), settings);
    closers.push(() => redlock.quit().catch(() => {}));
    const using = redlock.using(["gone"], 1_000, { automaticExtensionThreshold: 100 }, async (signal) => {
      await nodes[0]?.cli("DEL", "{palisade}:lock:gone");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      expect(signal.error).toMatchObject({ code: "LEASE_LOST" });
    });
    expect(await failure(using)).toMatchObject({ name: "ExecutionError", cause: { code: "LEASE_LOST" } });
  });
});

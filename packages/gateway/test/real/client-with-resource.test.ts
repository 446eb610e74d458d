// withResource with a real lock and a real gateway: acquire, seal, run, put, release.
import { createGatewayClient, GatewayError, withResource } from "@palisade/client";
import { createLocker, type Locker } from "@palisade/lock";
import { test as base, describe, expect, uniqueName } from "../support/fixtures.js";

/** Long enough that no test loses or misses a lock because a busy machine was slow. */
const patient = { ttlMs: 60_000, waitMs: 50_000, nodeTimeoutMs: 5_000 } as const;

const test = base
  .extend("locker", async ({ redis }, { onCleanup }): Promise<Locker> => {
    const locker = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient });
    onCleanup(() => locker.close());
    return locker;
  })
  .extend("client", ({ gateway }) => createGatewayClient({ url: gateway.url }));

interface Counter {
  readonly n: number;
}

describe("withResource", () => {
  test("G1 a counter that many increment at once loses nothing", async ({ locker, client }) => {
    const name = uniqueName("counter");
    const workers = Array.from({ length: 20 }, () =>
      withResource(locker, client, name, (counter: Counter | null) => ({ n: (counter?.n ?? 0) + 1 })),
    );
    const results = await Promise.all(workers);
    expect(await client.get(name)).toMatchObject({ value: { n: 20 }, rev: 20 });
    expect(new Set(results.map(({ token }) => token)).size).toBe(20);
  });

  test("stores nothing when the routine returns nothing or throws, and gives the lock back", async ({ locker, client }) => {
    const name = uniqueName();
    await withResource(locker, client, name, () => ({ n: 1 }));
    expect(
      await withResource(locker, client, name, (document: Counter | null) => (document === null ? { n: 0 } : undefined)),
    ).toMatchObject({ value: undefined, rev: 1 });
    await expect(
      withResource(locker, client, name, (): Counter => {
        throw new Error("the routine's own");
      }),
    ).rejects.toThrow("the routine's own");
    const attempt = await locker.tryAcquire(name);
    expect(attempt.ok).toBe(true);
    expect(await client.get(name)).toMatchObject({ value: { n: 1 }, rev: 1 });
  });

  test("G1 the seal comes before the routine: an older holder's write that is still on its way is refused", async ({ locker, client }) => {
    const name = uniqueName();
    const zombie = await locker.acquire(name);
    await zombie.release();
    const seen = await withResource(locker, client, name, async (document: Counter | null) => {
      expect(await client.put(name, { n: 666 }, { token: zombie.token })).toMatchObject({ ok: false, code: "fencing_token_stale" });
      return { n: (document?.n ?? 0) + 1 };
    });
    expect(seen.value).toEqual({ n: 1 });
    expect(await client.get(name)).toMatchObject({ value: { n: 1 } });
  });

  test("G1 a holder that was overtaken is told by an error that names the reason, and stores nothing", async ({ locker, client }) => {
    const name = uniqueName();
    const work = withResource(locker, client, name, async (_document: Counter | null, { lease }) => {
      await client.put(name, { n: 7 }, { token: lease.token + 1 });
      return { n: 1 };
    });
    const error = await work.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({
      code: "fencing_token_stale",
      outcome: "not_applied",
      message: expect.stringContaining(`${name} was not stored with token`),
    });
    expect(await client.get(name)).toMatchObject({ value: { n: 7 } });
  });

  test("G3 numbers its write after the last number that the routine used, by lease or by token", async ({ locker, client }) => {
    const name = uniqueName();
    const stored = await withResource(locker, client, name, async (_document: Counter | null, { lease }) => {
      expect(await client.put(name, { n: 1 }, { lease, seq: 1 })).toMatchObject({ ok: true, rev: 1 });
      expect(await client.put(name, { n: 2 }, { token: lease.token, seq: 7 })).toMatchObject({ ok: true, rev: 2 });
      expect(await client.put(name, { n: 0 }, { lease, seq: 3 })).toMatchObject({ ok: false, code: "sequence_out_of_order" });
      return { n: 3 };
    });
    expect(stored).toMatchObject({ rev: 3 });
    expect(await client.fence(name)).toMatchObject({ seq: 8 });
    expect(await client.get(name)).toMatchObject({ value: { n: 3 } });
  });

  test("does not wait for a routine whose lease is gone, and tells it by its signal", async ({ locker, client }) => {
    const name = uniqueName();
    let heard: AbortSignal | undefined;
    const work = withResource(
      locker,
      client,
      name,
      async (_document: Counter | null, { signal }) => {
        heard = signal;
        await locker.fleet.forceRelease(name, { reason: "drill" });
        return new Promise<Counter>(() => undefined);
      },
      { acquire: { ttlMs: 3_000 } }, // Renewed before a third of it is over, which finds out.
    );
    await expect(work).rejects.toMatchObject({ code: "lease_lost", outcome: "not_applied" });
    expect(heard?.aborted).toBe(true);
    expect(await client.get(name)).toMatchObject({ ok: false, code: "not_found" });
  });
});

interface Account {
  readonly balance: number;
}

describe("withResource for several", () => {
  const transfer = (locker: Locker, client: ReturnType<typeof createGatewayClient>, names: readonly [string, string]) =>
    withResource<readonly [Account, Account]>(locker, client, names, ([from, to]) => [
      { balance: (from?.balance ?? 0) - 1 },
      { balance: (to?.balance ?? 0) + 1 },
    ]);

  test("G1 transfers in both directions at once lose nothing, and their sum never changes", async ({ locker, client }) => {
    const [a, b] = [uniqueName("account"), uniqueName("account")] as const;
    const transfers = Array.from({ length: 20 }, (_, index) => transfer(locker, client, index % 4 === 0 ? [b, a] : [a, b]));
    await Promise.all(transfers);
    expect(await client.get(a)).toMatchObject({ value: { balance: -10 }, rev: 20 });
    expect(await client.get(b)).toMatchObject({ value: { balance: 10 }, rev: 20 });
  });

  test("G1 stores all or nothing: one overtaken resource refuses both", async ({ locker, client }) => {
    const names = [uniqueName(), uniqueName()] as const;
    const work = withResource<readonly [Account, Account]>(locker, client, names, async (_documents, { lease }) => {
      await client.put(names[1], { balance: 7 }, { token: lease.token + 1 });
      return [{ balance: 1 }, { balance: 1 }];
    });
    await expect(work).rejects.toMatchObject({ code: "fencing_token_stale", outcome: "not_applied" });
    expect(await client.get(names[0])).toMatchObject({ ok: false, code: "not_found" });
    expect(await client.get(names[1])).toMatchObject({ value: { balance: 7 } });
  });

  test("G3 numbers each of its writes after the last number that the routine used for it", async ({ locker, client }) => {
    const names = [uniqueName(), uniqueName()] as const;
    await withResource<readonly [Account, Account]>(locker, client, names, async (_documents, { lease }) => {
      await client.transaction([{ op: "put", resource: names[0], value: {} }], { lease, seq: 4 });
      return [{ balance: 1 }, { balance: 2 }];
    });
    expect(await Promise.all(names.map((name) => client.fence(name)))).toMatchObject([{ seq: 5 }, { seq: 1 }]);
    expect(await client.get(names[0])).toMatchObject({ value: { balance: 1 }, rev: 2 });
  });

  test("leaves alone what the routine leaves undefined, and refuses a wrong number of documents", async ({ locker, client }) => {
    const names = [uniqueName(), uniqueName()] as const;
    await transfer(locker, client, names);
    const second = await withResource<readonly [Account, Account]>(locker, client, names, ([, to], { rev }) => {
      expect(rev).toEqual([1, 1]);
      return [undefined, { balance: (to?.balance ?? 0) + 5 }];
    });
    expect(second).toMatchObject({ rev: [1, 2], value: [undefined, { balance: 6 }] });
    expect(await withResource<readonly [Account, Account]>(locker, client, names, () => undefined)).toMatchObject({ rev: [1, 2] });
    const short = withResource<Account[]>(locker, client, names, () => [{ balance: 0 }]);
    await expect(short).rejects.toThrow("the routine must return 2 documents");
    expect(await client.get(names[0])).toMatchObject({ value: { balance: -1 }, rev: 1 });
  });
});

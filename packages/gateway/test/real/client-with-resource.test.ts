// withResource with a real lock and a real gateway, and with the fakes of both that users test with:
// acquire, seal, run, put, release.
import { createGatewayClient, type GatewayClient, withResource } from "@palisade/client";
import { createFakeClient } from "@palisade/client/testing";
import { createLocker, type Locker } from "@palisade/lock";
import { createFakeLocker } from "@palisade/lock/testing";
import { test as base, describe, expect, uniqueName } from "../support/fixtures.js";

const real = base
  .extend("locker", async ({ redis }, { onCleanup }): Promise<Locker> => {
    // Long enough that no test loses or misses a lock because a busy machine was slow.
    const patient = { ttlMs: 60_000, waitMs: 50_000, nodeTimeoutMs: 5_000 };
    const locker = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient });
    onCleanup(() => locker.close());
    return locker;
  })
  .extend("client", ({ gateway }): GatewayClient => createGatewayClient({ url: gateway.url }));

const fake = base
  .extend("locker", async ({ task: _task }, { onCleanup }): Promise<Locker> => {
    const locker = createFakeLocker({ ttlMs: 60_000, waitMs: 50_000 });
    onCleanup(() => locker.close());
    return locker;
  })
  .extend("client", ({ task: _task }): GatewayClient => createFakeClient());

interface Counter {
  readonly n: number;
}

type Balances = readonly [number, number];

describe.each([
  ["real", real],
  ["fake", fake as unknown as typeof real],
] as const)("%s", (_kind, test) => {
  describe("withResource", () => {
    test("G1 a counter that many increment at once loses nothing", async ({ locker, client }) => {
      const name = uniqueName("counter");
      const increment = (counter: Counter | null): Counter => ({ n: (counter?.n ?? 0) + 1 });
      const results = await Promise.all(Array.from({ length: 20 }, () => withResource(locker, client, name, increment)));
      expect(await client.get(name)).toMatchObject({ value: { n: 20 }, rev: 20 });
      expect(new Set(results.map(({ token }) => token)).size).toBe(20);
    });

    test("stores nothing when the routine returns nothing or throws, and gives the lock back", async ({ locker, client }) => {
      const name = uniqueName();
      await withResource(locker, client, name, () => ({ n: 1 }));
      const unchanged = await withResource(locker, client, name, (document: Counter | null) => (document === null ? { n: 0 } : undefined));
      expect(unchanged).toMatchObject({ value: undefined, rev: 1 });
      const failed = withResource(locker, client, name, () => Promise.reject<Counter>(new Error("the routine's own")));
      await expect(failed).rejects.toThrow("the routine's own");
      expect(await locker.tryAcquire(name)).toMatchObject({ ok: true });
      expect(await client.get(name)).toMatchObject({ value: { n: 1 }, rev: 1 });
    });

    test("G1 the seal comes before the routine: an older holder's write that is still on its way is refused", async ({
      locker,
      client,
    }) => {
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
      const message = expect.stringContaining(`${name} was not stored with token`);
      await expect(work).rejects.toMatchObject({ name: "GatewayError", code: "fencing_token_stale", outcome: "not_applied", message });
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
    });

    test("does not wait for a routine whose lease is gone, and tells it by its signal", async ({ locker, client }) => {
      const name = uniqueName();
      let heard: AbortSignal | undefined;
      const lose = async (_document: Counter | null, { signal }: { readonly signal: AbortSignal }): Promise<Counter> => {
        heard = signal;
        await locker.fleet.forceRelease(name, { reason: "drill" });
        return new Promise(() => undefined);
      };
      const work = withResource(locker, client, name, lose, { acquire: { ttlMs: 3_000 } }); // A third of it, and a renewal finds out.
      await expect(work).rejects.toMatchObject({ code: "lease_lost", outcome: "not_applied" });
      expect(heard?.aborted).toBe(true);
      expect(await client.get(name)).toMatchObject({ ok: false, code: "not_found" });
    });
  });

  describe("withResource for several", () => {
    const transfer = (locker: Locker, client: ReturnType<typeof createGatewayClient>, names: readonly [string, string]) =>
      withResource<Balances>(locker, client, names, ([from, to]) => [(from ?? 0) - 1, (to ?? 0) + 1]);

    test("G1 transfers in both directions at once lose nothing, and their sum never changes", async ({ locker, client }) => {
      const [a, b] = [uniqueName("account"), uniqueName("account")] as const;
      const transfers = Array.from({ length: 20 }, (_, index) => transfer(locker, client, index % 4 === 0 ? [b, a] : [a, b]));
      await Promise.all(transfers);
      expect(await client.get(a)).toMatchObject({ value: -10, rev: 20 });
      expect(await client.get(b)).toMatchObject({ value: 10, rev: 20 });
    });

    test("G1 stores all or nothing: one overtaken resource refuses both", async ({ locker, client }) => {
      const names = [uniqueName(), uniqueName()] as const;
      const work = withResource<Balances>(locker, client, names, async (_documents, { lease }) => {
        await client.put(names[1], 7, { token: lease.token + 1 });
        return [1, 1];
      });
      await expect(work).rejects.toMatchObject({ code: "fencing_token_stale", outcome: "not_applied" });
      expect(await client.get(names[0])).toMatchObject({ ok: false, code: "not_found" });
      expect(await client.get(names[1])).toMatchObject({ value: 7 });
    });

    test("G3 numbers each of its writes after the last number that the routine used for it", async ({ locker, client }) => {
      const names = [uniqueName(), uniqueName()] as const;
      await withResource<Balances>(locker, client, names, async (_documents, { lease }) => {
        await client.transaction([{ op: "put", resource: names[0], value: {} }], { lease, seq: 4 });
        return [1, 2];
      });
      expect(await Promise.all(names.map((name) => client.fence(name)))).toMatchObject([{ seq: 5 }, { seq: 1 }]);
      expect(await client.get(names[0])).toMatchObject({ value: 1, rev: 2 });
    });

    test("leaves alone what the routine leaves undefined, and refuses a wrong number of documents", async ({ locker, client }) => {
      const names = [uniqueName(), uniqueName()] as const;
      await transfer(locker, client, names);
      const second = await withResource<Balances>(locker, client, names, ([, to], { rev }) => {
        expect(rev).toEqual([1, 1]);
        return [undefined, (to ?? 0) + 5];
      });
      expect(second).toMatchObject({ rev: [1, 2], value: [undefined, 6] });
      expect(await withResource<Balances>(locker, client, names, () => undefined)).toMatchObject({ rev: [1, 2] });
      const short = withResource<number[]>(locker, client, names, () => [0]);
      await expect(short).rejects.toThrow("the routine must return 2 documents");
      expect(await client.get(names[0])).toMatchObject({ value: -1, rev: 1 });
    });
  });
});

// A write that is refused by a fence which the database told a moment ago (ADR 0110).
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore, StoreEvent } from "../../src/fenced-store.js";
import { put } from "../support/statement.js";
import { describe, expect, type OpenStore, test, uniqueName } from "../support/store.js";

interface Counted {
  readonly store: FencedStore;
  /** Writes that went to the database. */
  sent(): number;
}

async function counted(openStore: OpenStore): Promise<Counted> {
  const events: StoreEvent[] = [];
  const store = await openStore({ observe: (event) => events.push(event) });
  return { store, sent: () => events.reduce((sum, event) => sum + (event.kind === "batch" ? event.rows : 0), 0) };
}

const stale = (resource: string, currentToken: number) => ({ kind: "stale", resource, presentedToken: 8, currentToken });

/**
 * Writes until one is refused without having been sent: that is soon, unless the machine stands
 * still.
 */
async function untilRefusedUnsent({ store, sent }: Counted, resource: string): Promise<Verdict> {
  for (;;) {
    const before = sent();
    const verdict = await store.write(put(resource, 8, '"late"'));
    if (sent() === before) return verdict;
    expect(verdict.kind).toBe("stale");
  }
}

describe("a stale write behind another", () => {
  test("G1 is refused without a statement, in every operation, and newer tokens are not", async ({ openStore }) => {
    const one = await counted(openStore);
    const { store } = one;
    const resource = uniqueName();
    await store.write(put(resource, 9, '"new"'));
    expect(await untilRefusedUnsent(one, resource)).toEqual(stale(resource, 9));
    for (const request of [
      { op: "patch", value: "{}" } as const,
      { op: "delete" } as const,
      { op: "seal" } as const,
      { ...put(resource, 8, "1"), seq: 4 },
    ])
      expect(await store.write({ ...request, resource, token: 8 })).toEqual(stale(resource, 9));
    expect(await store.write(put(resource, 9, '"newer"'))).toMatchObject({ kind: "accepted", rev: 2 });
    expect(await store.read(resource)).toMatchObject({ token: 9, value: '"newer"' });
  });

  test("G1 is not refused by a fence that an operator lowered, through whichever gateway, once the operator was answered", async ({
    openStore,
  }) => {
    const [one, other] = [await counted(openStore), await openStore()];
    const resource = uniqueName();
    await other.write(put(resource, 8, "1"));
    await other.raiseFence({ resource, token: 900, by: "alice", reason: "a typing error" });
    expect(await untilRefusedUnsent(one, resource)).toEqual(stale(resource, 900));
    expect(await other.lowerFence({ resource, token: 8, by: "alice", reason: "undone" })).toMatchObject({ kind: "changed" });
    expect(await one.store.write(put(resource, 8, "2"))).toMatchObject({ kind: "accepted", rev: 2 });
  });

  test("G1 is not refused by a fence that another operator lowered a moment ago, once a second one was told that it is low", async ({
    openStore,
  }) => {
    const [one, other] = [await counted(openStore), await openStore()];
    const resource = uniqueName();
    await other.write(put(resource, 8, "1"));
    await other.raiseFence({ resource, token: 900, by: "alice", reason: "a typing error" });
    expect(await untilRefusedUnsent(one, resource)).toEqual(stale(resource, 900));
    const first = other.lowerFence({ resource, token: 8, by: "alice", reason: "undone" });
    const isLow = async () => (await other.read(resource)) as { readonly token?: number };
    await expect.poll(isLow, { interval: 1 }).toMatchObject({ token: 8 });
    expect(await other.lowerFence({ resource, token: 8, by: "bob", reason: "undone" })).toMatchObject({ kind: "unchanged" });
    expect(await one.store.write(put(resource, 8, "2"))).toMatchObject({ kind: "accepted", rev: 2 });
    expect(await first).toMatchObject({ kind: "changed" });
  });

  test("G3 under the idempotency key of a write that was stored is answered as at first", async ({ openStore }) => {
    const one = await counted(openStore);
    const resource = uniqueName();
    const first = { ...put(resource, 8, '"first"'), idempotency: { key: uniqueName("key"), fingerprint: "f" } };
    expect(await one.store.write(first)).toMatchObject({ kind: "accepted", replayed: false });
    await one.store.write({ op: "seal", resource, token: 9 });
    expect(await untilRefusedUnsent(one, resource)).toEqual(stale(resource, 9));
    expect(await one.store.write(first)).toMatchObject({ kind: "accepted", rev: 1, replayed: true });
  });
});

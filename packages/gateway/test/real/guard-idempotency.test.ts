// One idempotency key is one write, however often it is sent and through however many gateways.
import type { WriteRequest } from "../../src/fence/verdict.js";
import type { StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/store.js";

function keyed(resource: string, fingerprint = "f"): WriteRequest & { readonly idempotency: { key: string; fingerprint: string } } {
  return { op: "put", resource, token: 1, value: "1", idempotency: { key: uniqueName("key"), fingerprint } };
}

describe("an idempotency key", () => {
  test("makes the retry get the answer of the first attempt, although others have written since", async ({ openStore }) => {
    const [one, other] = [await openStore(), await openStore()];
    const request = keyed(uniqueName());
    const first = await one.write(request);
    expect(first).toMatchObject({ kind: "accepted", rev: 1, created: true, replayed: false });
    await other.write({ op: "put", resource: request.resource, token: 5, value: "2" });
    expect(await other.write(request)).toEqual({ ...first, replayed: true });
    expect(await one.read(request.resource)).toMatchObject({ value: "2", rev: 2 });
  });

  test("that was used is found without a failed statement, so that the other writes of the batch pass", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    const spent = keyed(uniqueName());
    await store.write(spent);
    const verdicts = await Promise.all([spent, keyed(uniqueName()), keyed(uniqueName())].map((request) => store.write(request)));
    expect(verdicts.map((verdict) => verdict.kind === "accepted" && verdict.replayed)).toEqual([true, false, false]);
    expect(events).toEqual([expect.objectContaining({ rows: 1, outcome: "ok" }), expect.objectContaining({ rows: 3, outcome: "ok" })]);
  });

  test("keeps the document that a patch answered with", async ({ store }) => {
    const resource = uniqueName();
    await store.write({ op: "put", resource, token: 1, value: '{"a":12345678901234567890}' });
    const request: WriteRequest = { ...keyed(resource), op: "patch", value: '{"b":1.50}' };
    const first = await store.write(request);
    expect(first).toMatchObject({ value: '{"a": 12345678901234567890, "b": 1.50}' });
    expect(await store.write(request)).toEqual({ ...first, replayed: true });
  });

  test("cannot be spent twice: another fingerprint is told so", async ({ store }) => {
    const request = keyed(uniqueName());
    await store.write(request);
    expect(await store.write({ ...request, idempotency: { ...request.idempotency, fingerprint: "g" } })).toEqual({
      kind: "idempotency_key_reused",
    });
    expect(await store.write({ ...request, resource: uniqueName() })).toEqual({ kind: "idempotency_key_reused" });
  });

  test("is not spent by a write that was refused", async ({ store }) => {
    const request = keyed(uniqueName());
    await store.write({ op: "seal", resource: request.resource, token: 2 });
    expect(await store.write(request)).toMatchObject({ kind: "stale" });
    expect(await store.write({ ...request, token: 2 })).toMatchObject({ kind: "accepted", rev: 1, replayed: false });
  });

  test("that is in use in this process is in flight, or reused when it means something else", async ({ store }) => {
    const request = keyed(uniqueName());
    const [first, second, third] = await Promise.all([
      store.write(request),
      store.write(request),
      store.write({ ...request, idempotency: { ...request.idempotency, fingerprint: "g" } }),
    ]);
    expect(first).toMatchObject({ kind: "accepted", replayed: false });
    expect(second).toEqual({ kind: "idempotency_in_flight" });
    expect(third).toEqual({ kind: "idempotency_key_reused" });
    expect(await store.write(request)).toMatchObject({ kind: "accepted", replayed: true });
  });

  test("G3 raced through three gateways writes exactly once, and every caller gets the same answer", async ({ openStore }) => {
    const stores = [await openStore(), await openStore(), await openStore()];
    const requests = Array.from({ length: 25 }, () => keyed(uniqueName()));
    const answers = await Promise.all(requests.map((request) => Promise.all(stores.map((store) => store.write(request)))));
    for (const [index, verdicts] of answers.entries()) {
      expect(verdicts.map((verdict) => verdict.kind === "accepted" && verdict.rev)).toEqual([1, 1, 1]);
      expect(verdicts.filter((verdict) => verdict.kind === "accepted" && !verdict.replayed)).toHaveLength(1);
      expect(await stores[0]?.read(requests[index]?.resource ?? "")).toMatchObject({ rev: 1 });
    }
  });

  test("G3 raced through three gateways for different resources is spent by one of them", async ({ openStore }) => {
    const stores = [await openStore(), await openStore(), await openStore()];
    for (let round = 0; round < 10; round += 1) {
      const key = uniqueName("key");
      const resources = stores.map(() => uniqueName());
      const verdicts = await Promise.all(
        stores.map((store, index) =>
          store.write({
            op: "put",
            resource: resources[index] ?? "",
            token: 1,
            value: "1",
            idempotency: { key, fingerprint: String(index) },
          }),
        ),
      );
      expect(verdicts.map(({ kind }) => kind).sort()).toEqual(["accepted", "idempotency_key_reused", "idempotency_key_reused"]);
      const written = await Promise.all(resources.map((resource) => stores[0]?.read(resource)));
      expect(written.map((read) => read?.kind).sort()).toEqual(["found", "unknown_resource", "unknown_resource"]);
    }
  });

  test("is forgotten after its retention and not before", async ({ store, connect }) => {
    const client = await connect();
    const [old, young] = [keyed(uniqueName()), keyed(uniqueName())];
    await store.write(old);
    await store.write(young);
    await client.query("update palisade.used_keys set used_at = now() - interval '25 hours' where key = $1", [old.idempotency.key]);
    const { rows } = await client.query("select palisade.forget_used_keys('24 hours', 1000) as forgotten");
    expect(rows).toEqual([{ forgotten: 1 }]);
    expect(await store.write(young)).toMatchObject({ replayed: true });
    expect(await store.write(old)).toMatchObject({ rev: 2, replayed: false });
    await expect(client.query("select palisade.forget_used_keys('1 second', 1000)")).rejects.toMatchObject({ code: "22023" });
  });
});

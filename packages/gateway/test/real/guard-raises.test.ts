// Tokens are verified once per lease and only when they would raise a fence; a forged one raises
// nothing (G4).
import type { Issued } from "../../src/fence/verdict.js";
import type { StoreEvent } from "../../src/fenced-store.js";
import type { StoreConfig } from "../../src/postgres-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put } from "../support/sql.js";

/** Issued up to 100; 666 and above were not; for 77 the lock cannot be asked. */
function lockNodes() {
  const asked: string[] = [];
  const verify = async (resource: string, token: number): Promise<Issued> => {
    asked.push(`${resource} ${token}`);
    if (token === 77) throw new Error("no quorum");
    return token >= 666 ? "unissued" : "issued";
  };
  return { asked, verify };
}

describe("G4 with the lock's nodes known", () => {
  test("G4 a token that was never issued raises nothing, whatever it comes with", async ({ openStore }) => {
    const { verify } = lockNodes();
    const store = await openStore({ verify });
    const resource = uniqueName();
    const forged = { resource, token: 666 };
    const refusal = { kind: "token_unissued", resource, presentedToken: 666 };
    expect(await store.write({ ...forged, op: "put", value: "1" })).toEqual(refusal);
    expect(await store.write({ op: "put", resource, token: 5, value: "1" })).toMatchObject({ kind: "accepted" });
    expect(await store.write({ ...forged, op: "seal" })).toEqual(refusal);
    expect(await store.write({ ...forged, op: "put", value: "1" })).toEqual(refusal);
    expect(await store.write({ ...forged, op: "patch", value: "1", expected: 9 })).toEqual(refusal);
    expect(await store.write({ ...forged, op: "delete", seq: 1 })).toEqual(refusal);
    expect(await store.transaction({ operations: [put(uniqueName(), 5, "1"), put(resource, 666, "1")] })).toEqual({
      kind: "refused",
      refusals: [{ index: 1, refusal }],
    });
    expect(await store.read(resource)).toMatchObject({ token: 5, rev: 1 });
  });

  test("G4 a token that was never issued raises nothing in a transaction over resources that this gateway has not seen", async ({
    openStore,
  }) => {
    const [fenced, unknown] = [uniqueName(), uniqueName()];
    const other = await openStore();
    await other.write({ op: "put", resource: fenced, token: 5, value: "1" });
    const { asked, verify } = lockNodes();
    const store = await openStore({ verify });
    expect(await store.transaction({ operations: [put(fenced, 666, "2"), put(unknown, 667, "2")] })).toMatchObject({
      kind: "refused",
      refusals: [{ refusal: { kind: "token_unissued" } }, { refusal: { kind: "token_unissued" } }],
    });
    expect(asked.sort()).toEqual([`${fenced} 666`, `${unknown} 667`].sort());
    expect(await store.read(fenced)).toMatchObject({ token: 5, value: "1" });
    expect(await store.read(unknown)).toMatchObject({ kind: "unknown_resource" });
  });

  test("G4 the first write of a lease asks once, and the others of the lease do not", async ({ openStore }) => {
    const { asked, verify } = lockNodes();
    const store = await openStore({ verify });
    const resource = uniqueName();
    await Promise.all(Array.from({ length: 10 }, () => store.write({ op: "put", resource, token: 5, value: "1" })));
    for (const token of [5, 6, 6, 5, 6]) await store.write({ op: "put", resource, token, value: "1" });
    await store.transaction({ operations: [put(resource, 6, "1")] });
    expect(asked).toEqual([`${resource} 5`, `${resource} 6`]);
  });

  test("G4 a gateway that never saw the resource does not ask about a token that is already stored", async ({ openStore }) => {
    const resource = uniqueName();
    const first = await openStore({ verify: lockNodes().verify });
    await first.write({ op: "put", resource, token: 5, value: "1" });
    const { asked, verify } = lockNodes();
    const second = await openStore({ verify });
    expect(await second.write({ op: "put", resource, token: 5, value: "2" })).toMatchObject({ kind: "accepted", rev: 2 });
    expect(await second.write({ op: "put", resource, token: 4, value: "2" })).toMatchObject({ kind: "stale" });
    expect(asked).toEqual([]);
    expect(await second.write({ op: "put", resource, token: 6, value: "2" })).toMatchObject({ kind: "accepted" });
    expect(asked).toEqual([`${resource} 6`]);
  });

  test("G4 nodes that cannot be asked leave a raise unapplied, or let it pass if the operator chose so", async ({ openStore }) => {
    const { verify, asked } = lockNodes();
    const resource = uniqueName();
    const closed = await openStore({ verify });
    await closed.write({ op: "put", resource, token: 5, value: "1" });
    expect(await closed.write({ op: "put", resource, token: 77, value: "1" })).toEqual({
      kind: "verification_unavailable",
      resource,
      presentedToken: 77,
    });
    expect(await closed.write({ op: "put", resource, token: 5, value: "1" })).toMatchObject({ kind: "accepted", rev: 2 });
    const open = await openStore({ verify, verifyUnreachable: "accept" });
    expect(await open.write({ op: "put", resource, token: 77, value: "1" })).toMatchObject({ kind: "accepted", token: 77 });
    expect(await open.write({ op: "put", resource, token: 666, value: "1" })).toMatchObject({ kind: "token_unissued" });
    expect(asked.filter((question) => question.endsWith(" 77"))).toHaveLength(2);
  });

  test("G4 a token that was accepted while the lock could not be asked is asked about again after its fence was lowered", async ({
    openStore,
  }) => {
    let isAway = true;
    const verify = async (): Promise<Issued> => (isAway ? "unreachable" : "unissued");
    const store = await openStore({ verify, verifyUnreachable: "accept" });
    const [single, together] = [uniqueName(), uniqueName()];
    const lower = (resource: string) => store.lowerFence({ resource, token: 5, by: "alice", reason: "900 was forged" });
    for (const _again of [1, 2]) {
      expect(await store.write(put(single, 900, "1"))).toMatchObject({ kind: "accepted" });
      expect(await store.transaction({ operations: [put(together, 900, "1")] })).toMatchObject({ kind: "committed" });
    }
    isAway = false;
    expect([await lower(single), await lower(together)]).toMatchObject([{ kind: "changed" }, { kind: "changed" }]);
    expect(await store.write(put(single, 900, "2"))).toMatchObject({ kind: "token_unissued" });
    expect(await store.transaction({ operations: [put(together, 900, "2")] })).toMatchObject({ kind: "refused" });
    expect([await store.read(single), await store.read(together)]).toMatchObject([{ token: 5 }, { token: 5 }]);
  });

  test("G4 a resource that was asked about and never written is still created by its first write", async ({ openStore }) => {
    const { verify } = lockNodes();
    const store = await openStore({ verify });
    const resource = uniqueName();
    expect(await store.write({ op: "put", resource, token: 5, value: "1", expected: 9 })).toMatchObject({
      kind: "etag_mismatch",
      currentRev: null,
    });
    expect(await store.write({ op: "put", resource, token: 5, value: "1" })).toMatchObject({ kind: "accepted", rev: 1, created: true });
  });

  test("every raise and every question is reported", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const config: Partial<StoreConfig> = { verify: lockNodes().verify, observe: (event) => events.push(event) };
    const store = await openStore(config);
    const resource = uniqueName();
    for (const token of [5, 5, 8, 666]) await store.write({ op: "put", resource, token, value: "1" });
    const told = events.filter(({ kind }) => kind === "raised" || kind === "verified");
    expect(told).toEqual([
      { kind: "verified", resource, token: 5, answer: "issued" },
      { kind: "raised", resource, token: 5 },
      { kind: "verified", resource, token: 8, answer: "issued" },
      { kind: "raised", resource, token: 8 },
      { kind: "verified", resource, token: 666, answer: "unissued" },
    ]);
  });

  test("a stale token is refused as stale, without asking the lock", async ({ openStore }) => {
    const { asked, verify } = lockNodes();
    const store = await openStore({ verify });
    const resource = uniqueName();
    await store.raiseFence({ resource, token: 900, by: "operator", reason: "test" });
    expect(await store.write({ op: "put", resource, token: 666, value: "1" })).toMatchObject({ kind: "stale", currentToken: 900 });
    expect(asked).toEqual([]);
  });
});

describe("an operator", () => {
  test("G1 lowers a fence, and is answered when no gateway refuses by it any more", async ({ openStore }) => {
    const [one, other] = [await openStore(), await openStore()];
    const resource = uniqueName();
    await other.write({ op: "put", resource, token: 8, value: "1" });
    await other.raiseFence({ resource, token: 900, by: "alice", reason: "a typing error" });
    for (const store of [one, other, one])
      expect(await store.write({ op: "put", resource, token: 8, value: "2" })).toMatchObject({ kind: "stale", currentToken: 900 });
    expect(await other.lowerFence({ resource, token: 8, by: "alice", reason: "undone" })).toMatchObject({ kind: "changed" });
    for (const store of [one, other])
      expect(await store.write({ op: "put", resource, token: 8, value: "2" })).toMatchObject({ kind: "accepted" });
  });

  test("raises a fence, also of a resource never seen, and fences the holder by it", async ({ store }) => {
    const resource = uniqueName();
    const by = { by: "alice", reason: "worker-7 is wedged" };
    expect(await store.raiseFence({ resource, token: 50, ...by })).toEqual({ kind: "changed", resource, previousToken: null, token: 50 });
    expect(await store.write({ op: "put", resource, token: 49, value: "1" })).toMatchObject({ kind: "stale", currentToken: 50 });
    expect(await store.raiseFence({ resource, token: 50, ...by })).toEqual({ kind: "unchanged", resource, currentToken: 50 });
    expect(await store.raiseFence({ resource, token: 60, ...by })).toEqual({ kind: "changed", resource, previousToken: 50, token: 60 });
  });

  test("G1 never lowers a fence by raising it, nor raises it by lowering it", async ({ store }) => {
    const resource = uniqueName();
    const by = { by: "alice", reason: "a slip of the hand" };
    await store.write({ op: "put", resource, token: 50, value: "1" });
    expect(await store.raiseFence({ resource, token: 40, ...by })).toEqual({ kind: "unchanged", resource, currentToken: 50 });
    expect(await store.lowerFence({ resource, token: 60, ...by })).toEqual({ kind: "unchanged", resource, currentToken: 50 });
    expect(await store.write({ op: "put", resource, token: 49, value: "1" })).toMatchObject({ kind: "stale", currentToken: 50 });
  });

  test("lowers a fence that was raised by mistake, with a reason on record; the document stays", async ({ store, connect }) => {
    const resource = uniqueName();
    await store.write({ op: "put", resource, token: 5, seq: 3, value: "1" });
    await store.raiseFence({ resource, token: 999_999_999_999_999, by: "mallory", reason: "oops" });
    expect(await store.lowerFence({ resource, token: 5, by: "alice", reason: "raised by mistake" })).toMatchObject({
      kind: "changed",
      previousToken: 999_999_999_999_999,
    });
    expect(await store.write({ op: "put", resource, token: 5, seq: 1, value: "2" })).toMatchObject({ kind: "accepted", rev: 2 });
    expect(await store.lowerFence({ resource, token: 5, by: "alice", reason: "again" })).toEqual({
      kind: "unchanged",
      resource,
      currentToken: 5,
    });
    const client = await connect();
    const { rows } = await client.query(
      "select previous_token, token, changed_by, reason from palisade.fence_changes where resource = $1 order by id",
      [resource],
    );
    expect(rows).toEqual([
      { previous_token: "5", token: "999999999999999", changed_by: "mallory", reason: "oops" },
      { previous_token: "999999999999999", token: "5", changed_by: "alice", reason: "raised by mistake" },
    ]);
  });

  test("cannot lower what has no fence, and must give a name and a reason", async ({ store }) => {
    const resource = uniqueName();
    expect(await store.lowerFence({ resource, token: 5, by: "alice", reason: "why" })).toEqual({
      kind: "unchanged",
      resource,
      currentToken: null,
    });
    expect(await store.read(resource)).toMatchObject({ kind: "unknown_resource" });
    await expect(store.raiseFence({ resource, token: 5, by: "", reason: "why" })).rejects.toThrow(RangeError);
    await expect(store.raiseFence({ resource, token: 5, by: "alice", reason: "" })).rejects.toThrow(RangeError);
  });
});

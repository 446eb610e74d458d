// Tokens are verified once per lease and only when they would raise a fence; a forged one raises
// nothing (G4). An operator moves a fence by hand, on record.
import type { Issued } from "../../src/fence/verdict.js";
import type { StoreEvent } from "../../src/fenced-store.js";
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
    const store = await openStore({ verify: lockNodes().verify });
    const resource = uniqueName();
    const forged = { resource, token: 666 };
    const refusal = { kind: "token_unissued", resource, presentedToken: 666 };
    expect(await store.write({ ...forged, op: "put", value: "1" })).toEqual(refusal);
    expect(await store.write(put(resource, 5, "1"))).toMatchObject({ kind: "accepted" });
    for (const operation of [
      { op: "seal" },
      { op: "put", value: "1" },
      { op: "patch", value: "1", expected: 9 },
      { op: "delete", seq: 1 },
    ] as const)
      expect(await store.write({ ...forged, ...operation })).toEqual(refusal);
    const refused = { kind: "refused", refusals: [{ index: 1, refusal }] };
    expect(await store.transaction({ operations: [put(uniqueName(), 5, "1"), put(resource, 666, "1")] })).toEqual(refused);
    expect(await store.read(resource)).toMatchObject({ token: 5, rev: 1 });
  });

  test("G4 nor in a transaction over resources that this gateway has not seen", async ({ openStore }) => {
    const [fenced, unknown] = [uniqueName(), uniqueName()];
    const other = await openStore();
    await other.write(put(fenced, 5, "1"));
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
    await Promise.all(Array.from({ length: 10 }, () => store.write(put(resource, 5, "1"))));
    for (const token of [5, 6, 6, 5, 6]) await store.write(put(resource, token, "1"));
    await store.transaction({ operations: [put(resource, 6, "1")] });
    expect(asked).toEqual([`${resource} 5`, `${resource} 6`]);
  });

  test("G4 a gateway that never saw the resource does not ask about a token that is already stored", async ({ openStore }) => {
    const resource = uniqueName();
    const first = await openStore({ verify: lockNodes().verify });
    await first.write(put(resource, 5, "1"));
    const { asked, verify } = lockNodes();
    const second = await openStore({ verify });
    expect(await second.write(put(resource, 5, "2"))).toMatchObject({ kind: "accepted", rev: 2 });
    expect(await second.write(put(resource, 4, "2"))).toMatchObject({ kind: "stale" });
    expect(asked).toEqual([]);
    expect(await second.write(put(resource, 6, "2"))).toMatchObject({ kind: "accepted" });
    expect(asked).toEqual([`${resource} 6`]);
    const raised = uniqueName();
    await second.raiseFence({ resource: raised, token: 900, by: "operator", reason: "test" });
    expect(await second.write(put(raised, 666, "1"))).toMatchObject({ kind: "stale", currentToken: 900 });
    expect(asked).toHaveLength(1);
  });

  test("G4 nodes that cannot be asked leave a raise unapplied, or let it pass if the operator chose so", async ({ openStore }) => {
    const { verify, asked } = lockNodes();
    const resource = uniqueName();
    const closed = await openStore({ verify });
    await closed.write(put(resource, 5, "1"));
    const unavailable = { kind: "verification_unavailable", resource, presentedToken: 77 };
    expect(await closed.write(put(resource, 77, "1"))).toEqual(unavailable);
    expect(await closed.write(put(resource, 5, "1"))).toMatchObject({ kind: "accepted", rev: 2 });
    const open = await openStore({ verify, verifyUnreachable: "accept" });
    expect(await open.write(put(resource, 77, "1"))).toMatchObject({ kind: "accepted", token: 77 });
    expect(await open.write(put(resource, 666, "1"))).toMatchObject({ kind: "token_unissued" });
    expect(asked.filter((question) => question.endsWith(" 77"))).toHaveLength(2);
  });

  test("G4 a token that was accepted while the lock could not be asked is asked about again after its fence was lowered", async ({
    openStore,
  }) => {
    let isAway = true;
    const verify = async (): Promise<Issued> => (isAway ? "unreachable" : "unissued");
    const store = await openStore({ verify, verifyUnreachable: "accept" });
    const [single, together] = [uniqueName(), uniqueName()];
    const write = async () => [
      await store.write(put(single, 900, "1")),
      await store.transaction({ operations: [put(together, 900, "1")] }),
    ];
    const lower = (resource: string) => store.lowerFence({ resource, token: 5, by: "alice", reason: "900 was forged" });
    for (const _again of [1, 2]) expect(await write()).toMatchObject([{ kind: "accepted" }, { kind: "committed" }]);
    isAway = false;
    expect([await lower(single), await lower(together)]).toMatchObject([{ kind: "changed" }, { kind: "changed" }]);
    expect(await write()).toMatchObject([{ kind: "token_unissued" }, { kind: "refused" }]);
    expect([await store.read(single), await store.read(together)]).toMatchObject([{ token: 5 }, { token: 5 }]);
  });

  test("G4 a resource that was asked about and never written is still created by its first write", async ({ openStore }) => {
    const store = await openStore({ verify: lockNodes().verify });
    const first = put(uniqueName(), 5, "1");
    expect(await store.write({ ...first, expected: 9 })).toMatchObject({ kind: "etag_mismatch", currentRev: null });
    expect(await store.write(first)).toMatchObject({ kind: "accepted", rev: 1, created: true });
  });

  test("every raise and every question is reported", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const store = await openStore({ verify: lockNodes().verify, observe: (event) => events.push(event) });
    const resource = uniqueName();
    for (const token of [5, 5, 8, 666]) await store.write(put(resource, token, "1"));
    expect(events.filter(({ kind }) => kind === "raised" || kind === "verified")).toEqual([
      { kind: "verified", resource, token: 5, answer: "issued" },
      { kind: "raised", resource, token: 5 },
      { kind: "verified", resource, token: 8, answer: "issued" },
      { kind: "raised", resource, token: 8 },
      { kind: "verified", resource, token: 666, answer: "unissued" },
    ]);
  });
});

describe("an operator", () => {
  const by = { by: "alice", reason: "worker-7 is wedged" };

  test("G1 lowers a fence, and is answered when no gateway refuses by it any more", async ({ openStore }) => {
    const [one, other] = [await openStore(), await openStore()];
    const resource = uniqueName();
    await other.write(put(resource, 8, "1"));
    await other.raiseFence({ resource, token: 900, ...by });
    for (const store of [one, other, one])
      expect(await store.write(put(resource, 8, "2"))).toMatchObject({ kind: "stale", currentToken: 900 });
    expect(await other.lowerFence({ resource, token: 8, ...by })).toMatchObject({ kind: "changed" });
    for (const store of [one, other]) expect(await store.write(put(resource, 8, "2"))).toMatchObject({ kind: "accepted" });
  });

  test("G1 raises a fence, also of a resource never seen, and never lowers one by raising it, nor raises one by lowering it", async ({
    store,
  }) => {
    const resource = uniqueName();
    expect(await store.raiseFence({ resource, token: 50, ...by })).toEqual({ kind: "changed", resource, previousToken: null, token: 50 });
    const unchanged = { kind: "unchanged", resource, currentToken: 50 };
    for (const token of [50, 40]) expect(await store.raiseFence({ resource, token, ...by })).toEqual(unchanged);
    expect(await store.lowerFence({ resource, token: 60, ...by })).toEqual(unchanged);
    expect(await store.write(put(resource, 49, "1"))).toMatchObject({ kind: "stale", currentToken: 50 });
    expect(await store.raiseFence({ resource, token: 60, ...by })).toEqual({ kind: "changed", resource, previousToken: 50, token: 60 });
  });

  test("lowers a fence that was raised by mistake, with a reason on record; the document stays", async ({ store, connect }) => {
    const [client, resource] = [await connect(), uniqueName()];
    const highest = 999_999_999_999_999;
    await store.write({ ...put(resource, 5, "1"), seq: 3 });
    await store.raiseFence({ resource, token: highest, by: "mallory", reason: "oops" });
    const lowered = { resource, token: 5, by: "alice", reason: "raised by mistake" };
    expect(await store.lowerFence(lowered)).toMatchObject({ kind: "changed", previousToken: highest });
    expect(await store.write({ ...put(resource, 5, "2"), seq: 1 })).toMatchObject({ kind: "accepted", rev: 2 });
    expect(await store.lowerFence(lowered)).toEqual({ kind: "unchanged", resource, currentToken: 5 });
    const { rows } = await client.query(
      "select previous_token, token, changed_by, reason from palisade.fence_changes where resource = $1 order by id",
      [resource],
    );
    expect(rows).toEqual([
      { previous_token: "5", token: String(highest), changed_by: "mallory", reason: "oops" },
      { previous_token: String(highest), token: "5", changed_by: "alice", reason: "raised by mistake" },
    ]);
  });

  test("cannot lower what has no fence, and must give a name and a reason", async ({ store }) => {
    const resource = uniqueName();
    expect(await store.lowerFence({ resource, token: 5, ...by })).toEqual({ kind: "unchanged", resource, currentToken: null });
    expect(await store.read(resource)).toMatchObject({ kind: "unknown_resource" });
    for (const missing of [{ by: "" }, { reason: "" }])
      await expect(store.raiseFence({ resource, token: 5, ...by, ...missing })).rejects.toThrow(RangeError);
  });
});

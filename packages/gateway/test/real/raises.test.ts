// Tokens are verified once per lease and only when they would raise a fence; a forged one raises
// nothing (G4). An operator moves a fence by hand, on record.
import type { Issued } from "../../src/fence/verdict.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put } from "../support/sql.js";

/** Tokens from 666 on were not issued. */
function lockNodes() {
  const asked: string[] = [];
  const verify = async (resource: string, token: number): Promise<Issued> => {
    asked.push(`${resource} ${token}`);
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

  test("G4 a token that was accepted unasked is asked about after its fence was lowered", async ({ openStore }) => {
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
});

test("G1 a fence that an operator lowers is answered when no gateway refuses by it any more", async ({ openStore }) => {
  const [one, other] = [await openStore(), await openStore()];
  const resource = uniqueName();
  const by = { by: "alice", reason: "worker-7 is wedged" };
  await other.write(put(resource, 8, "1"));
  await other.raiseFence({ resource, token: 900, ...by });
  for (const store of [one, other, one])
    expect(await store.write(put(resource, 8, "2"))).toMatchObject({ kind: "stale", currentToken: 900 });
  expect(await other.lowerFence({ resource, token: 8, ...by })).toMatchObject({ kind: "changed" });
  for (const store of [one, other]) expect(await store.write(put(resource, 8, "2"))).toMatchObject({ kind: "accepted" });
});

// A write with a number is one write, however often it is sent and through however many gateways:
// a transaction as well, if one of its operations has a number.
import type { TransactionVerdict, Verdict, WriteRequest } from "../../src/fence/verdict.js";
import type { StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put } from "../support/sql.js";

const numbered = (resource: string, seq = 1, value = "1"): WriteRequest => ({ ...put(resource, 5, value), seq });
const kindsOf = (verdicts: readonly (Verdict | TransactionVerdict)[]) => verdicts.map(({ kind }) => kind).sort();

describe("a write with a number", () => {
  test("G3 that is repeated finds its number and its revision stored, through any gateway, and is not applied again", async ({
    openStore,
  }) => {
    const [one, other] = [await openStore(), await openStore()];
    const resource = uniqueName();
    expect(await one.write(numbered(resource, 1))).toMatchObject({ kind: "accepted", rev: 1 });
    expect(await one.write(numbered(resource, 2))).toMatchObject({ kind: "accepted", rev: 2 });
    const repeated = { kind: "sequence_out_of_order", resource, currentSeq: 2, currentRev: 2 };
    expect(await other.write(numbered(resource, 2))).toEqual(repeated);
    expect(await other.write(numbered(resource, 1))).toEqual(repeated);
    expect(await one.read(resource)).toMatchObject({ rev: 2 });
  });

  test("G3 raced through three gateways is applied exactly once, and the others are told so", async ({ openStore }) => {
    const stores = [await openStore(), await openStore(), await openStore()];
    const requests = Array.from({ length: 25 }, () => numbered(uniqueName(), 7));
    const answers = await Promise.all(requests.map((request) => Promise.all(stores.map((store) => store.write(request)))));
    for (const [index, verdicts] of answers.entries()) {
      expect(kindsOf(verdicts)).toEqual(["accepted", "sequence_out_of_order", "sequence_out_of_order"]);
      for (const verdict of verdicts) if (verdict.kind !== "accepted") expect(verdict).toMatchObject({ currentSeq: 7, currentRev: 1 });
      expect(await stores[0]?.read(requests[index]?.resource ?? "")).toMatchObject({ rev: 1 });
    }
  });

  test("that is repeated is found without a failed statement, so that the other writes of the batch pass", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    const first = numbered(uniqueName());
    await store.write(first);
    const verdicts = await Promise.all([first, numbered(uniqueName()), numbered(uniqueName())].map((request) => store.write(request)));
    expect(verdicts.map(({ kind }) => kind)).toEqual(["sequence_out_of_order", "accepted", "accepted"]);
    expect(events).toEqual([expect.objectContaining({ rows: 1, outcome: "ok" }), expect.objectContaining({ rows: 3, outcome: "ok" })]);
  });

  test("G1 that is repeated once a newer holder has raised the fence is stale, and does not use its number up before", async ({
    store,
  }) => {
    const resource = uniqueName();
    await store.write({ op: "seal", resource, token: 6 });
    expect(await store.write(numbered(resource))).toMatchObject({ kind: "stale", currentToken: 6 });
    expect(await store.write({ ...numbered(resource), token: 6 })).toMatchObject({ kind: "accepted", rev: 1 });
    await store.write({ op: "seal", resource, token: 7 });
    expect(await store.write({ ...numbered(resource), token: 6 })).toMatchObject({ kind: "stale", currentToken: 7 });
  });
});

describe("a transaction with a number", () => {
  const pair = () => [uniqueName(), uniqueName()] as const;

  test("G3 raced through two gateways is applied once, and the other is told its number and the revisions", async ({ openStore }) => {
    const stores = [await openStore(), await openStore()];
    for (let round = 0; round < 10; round += 1) {
      const [a, b] = pair();
      await stores[0]?.write(put(b, 1, "0"));
      const operations = [numbered(a), numbered(b)];
      const verdicts = await Promise.all(stores.map((store) => store.transaction({ operations })));
      expect(kindsOf(verdicts)).toEqual(["committed", "refused"]);
      expect(verdicts.find(({ kind }) => kind === "refused")).toMatchObject({
        refusals: [
          { index: 0, refusal: { kind: "sequence_out_of_order", currentSeq: 1, currentRev: 1 } },
          { index: 1, refusal: { kind: "sequence_out_of_order", currentSeq: 1, currentRev: 2 } },
        ],
        currentRevs: [1, 2],
      });
      expect([await stores[0]?.read(a), await stores[0]?.read(b)]).toMatchObject([{ rev: 1 }, { rev: 2 }]);
    }
  });

  test("G3 is applied once although only one of its operations has a number", async ({ store }) => {
    const [a, b] = pair();
    const operations = [put(a, 5, "1"), numbered(b), { op: "seal", resource: uniqueName(), token: 5 } as const];
    expect(await store.transaction({ operations })).toMatchObject({ kind: "committed" });
    expect(await store.transaction({ operations })).toMatchObject({
      kind: "refused",
      refusals: [{ index: 1, refusal: { kind: "sequence_out_of_order", currentSeq: 1 } }],
      currentRevs: [1, 1, 0],
    });
    expect([await store.read(a), await store.read(b)]).toMatchObject([{ rev: 1 }, { rev: 1 }]);
  });
});

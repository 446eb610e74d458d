// Random concurrent histories through two gateways, judged by the checker: the fence holds and
// every answer is true.
import fc from "fast-check";
import type { WriteRequest } from "../../src/fence/verdict.js";
import { brokenPromises, type Recorded, Recorder } from "../support/history-checker.js";
import { describe, expect, test, uniqueName } from "../support/store.js";

const operation = fc.record(
  {
    op: fc.constantFrom("put", "put", "put", "patch", "delete", "seal"),
    place: fc.nat(2),
    token: fc.integer({ min: 1, max: 8 }),
    seq: fc.integer({ min: 1, max: 4 }),
    expected: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom("absent" as const, "present" as const)),
  },
  { requiredKeys: ["op", "place", "token"] },
);
/** Clients run at the same time; the operations of each run one after the other. */
const clients = fc.array(fc.array(operation, { minLength: 1, maxLength: 12 }), { minLength: 2, maxLength: 10 });

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

function requestOf({ op, place, token, seq, expected }: Operation, resources: readonly string[]): WriteRequest {
  const value = op === "patch" ? { value: '{"patched":true}' } : {};
  return { op, resource: resources[place] ?? "", token, seq, ...(op === "seal" ? {} : { expected }), ...value };
}

describe("G1 random histories", () => {
  test("G1 of concurrent writers through two gateways never let a token fall, nor lose or invent a write", async ({
    openStore,
    connect,
  }) => {
    const [one, two] = [await openStore({ history: "on" }), await openStore({ history: "on", maxBatchRows: 3 })];
    const client = await connect();
    await fc.assert(
      fc.asyncProperty(clients, async (schedules) => {
        const resources = [uniqueName("h"), uniqueName("h"), uniqueName("h")];
        const recorder = new Recorder();
        await Promise.all(
          schedules.map(async (schedule, index) => {
            for (const step of schedule) await recorder.write(index % 2 === 0 ? one : two, requestOf(step, resources));
          }),
        );
        expect(await brokenPromises(client, recorder.records)).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  test("G1 control: the checker finds a token that fell, a lost write, an invented one and a false refusal", async ({
    connect,
    openStore,
  }) => {
    const client = await connect();
    const store = await openStore({ history: "on" });
    const resource = uniqueName("c");
    const recorder = new Recorder();
    for (const token of [1, 5]) await recorder.write(store, { op: "put", resource, token });
    expect(await brokenPromises(client, recorder.records)).toEqual([]);
    const [first, second] = recorder.records as [Recorded, Recorded];
    const told = (record: Recorded, change: object): Recorded => ({
      ...record,
      verdict: { ...record.verdict, ...change } as Recorded["verdict"],
    });
    const faultsOf = async (...records: Recorded[]) =>
      (await brokenPromises(client, records)).map((fault) => fault.slice(resource.length + 2, resource.length + 4));
    expect(await faultsOf(first, told(second, { rev: 3 }))).toContain("G3");
    expect(await faultsOf(first, told(second, { kind: "stale" }))).toContain("G3");
    expect(await faultsOf(first, second, told({ ...second, id: "w9" }, { kind: "accepted", rev: 9 }))).toContain("G3");
    expect(await faultsOf(first, told({ ...first, id: "w9", request: { ...first.request, token: 7 } }, { kind: "stale" }))).toContain("G1");
    expect(await faultsOf({ ...first, startedAt: second.endedAt + 1, endedAt: second.endedAt + 2 }, second)).toContain("G1");
    await client.query("update palisade.history set token = 9 where resource = $1 and rev = 1", [resource]);
    expect(await faultsOf(first, second)).toContain("G1");
  });
});

// Every way in which the answer to a write can be lost, on a real Postgres behind a real proxy: each
// verdict is compared with what the table then holds (G3). What an error of Postgres means:
// test/unit/fence/failure.test.ts; how a verdict is answered: http-postgres-faults.test.ts.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore, StoreConfig, StoreEvent } from "../../src/fenced-store.js";
import { test as base, describe, eventually, expect, uniqueName } from "../support/fixtures.js";
import { put as request } from "../support/sql.js";

const put = (store: FencedStore, resource: string): Promise<Verdict> => store.write(request(resource, 5, "1"));

const test = base
  .extend("open", ({ database, proxy, openStore }) => {
    return (config: Partial<StoreConfig> = {}) => openStore({ databaseUrl: proxy.urlOf(database.url), statementsInFlight: 1, ...config });
  })
  /** Already connected, by one connection for writes. */
  .extend("warm", ({ open }) => async (config: Partial<StoreConfig> = {}): Promise<FencedStore> => {
    const store = await open(config);
    await eventually(async () => (await put(store, uniqueName("warm"))).kind).toBe("accepted"); // A short connect timeout may strike at first.
    return store;
  })
  /** Past the proxy. */
  .extend("revOf", ({ store }) => async (resource: string): Promise<number | undefined> => {
    const read = await store.read(resource);
    return read.kind === "found" ? read.rev : undefined;
  });

test.for(["replies", "requests"] as const)(
  "G3 where the connection is lost with its %s, writes and transactions are unknown, none is sent again, and those with a number may be",
  async (lost, { proxy, warm, revOf }) => {
    const store = await warm();
    await store.transaction({ operations: [{ op: "seal", resource: uniqueName("warm"), token: 1 }] });
    const names = Array.from({ length: 20 }, () => uniqueName());
    const [alone = "", together = "", beside = "", ...neighbours] = names;
    const numbered = (resource: string) => ({ ...request(resource, 5, "1"), seq: 1 });
    const operations = [numbered(together), request(beside, 5, "1")];
    const batch = () => Promise.all([store.write(numbered(alone)), ...neighbours.map((name) => put(store, name))]);
    for (const send of [batch, async () => [await store.transaction({ operations })]]) {
      proxy.cutAfter(0, lost);
      for (const verdict of await send()) expect(verdict).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
      await proxy.heal();
    }
    const isStored = lost === "replies";
    for (const name of names) await eventually(() => revOf(name)).toBe(isStored ? 1 : undefined);
    const found = { kind: "sequence_out_of_order", currentSeq: 1, currentRev: 1 };
    const refused = { kind: "refused", refusals: [{ index: 0, refusal: found }], currentRevs: [1, 1] };
    expect([await store.write(numbered(alone)), await store.transaction({ operations })]).toMatchObject(
      isStored ? [found, refused] : [{ kind: "accepted" }, { kind: "committed" }],
    );
    for (const name of [alone, together, beside]) expect(await revOf(name)).toBe(1);
  },
);

test("G3 wherever the transaction of a patch is cut, no answer says more than is known", async ({ proxy, warm }) => {
  const store = await warm();
  const told = new Set<string>();
  for (let bytes = 0; !told.has("accepted"); bytes += 12) {
    const resource = uniqueName();
    await eventually(async () => (await store.write(request(resource, 1, "{}"))).kind).toBe("accepted");
    const { rev } = (await store.read(resource)) as { readonly rev: number };
    proxy.cutAfter(bytes, "replies");
    const { kind } = await store.write({ op: "patch", resource, token: 1, value: '{"a":1}' });
    told.add(kind);
    await proxy.heal();
    // By a later statement of the same row, so that what was under way is over.
    const later = await store.write(request(resource, 1, "1"));
    if (kind === "unavailable") expect([bytes, later]).toMatchObject([bytes, { kind: "accepted", rev: rev + 1 }]);
  }
  expect([...told].sort()).toEqual(["accepted", "outcome_unknown", "unavailable"]);
});

describe("while no answer comes", () => {
  test("G3 a write is unknown and its connection given up; what cannot connect is not applied", async ({ proxy, warm, revOf }) => {
    const store = await warm({ writeTimeoutMs: 150, connectTimeoutMs: 100, statementTimeoutMs: 20_000 });
    const [sent, late] = [uniqueName(), uniqueName()];
    proxy.holdReplies();
    const sentAt = performance.now();
    expect(await put(store, sent)).toMatchObject({ kind: "outcome_unknown", reason: "timed_out" });
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(145);
    expect(await put(store, late)).toMatchObject({ kind: "unavailable", reason: "unreachable", outcome: "not_applied" });
    await eventually(() => revOf(sent)).toBe(1);
    proxy.deliver(); // The late answer reaches no statement.
    await proxy.until(() => proxy.connections === 0);
    expect(await revOf(late)).toBeUndefined();
    await eventually(async () => (await put(store, late)).kind).toBe("accepted"); // The short timeout may strike again.
    await proxy.until(() => proxy.connections === 1);
  });

  test("only one statement at a time is started, until Postgres answers again", async ({ proxy, warm }) => {
    const store = await warm({ writeTimeoutMs: 100, connectTimeoutMs: 500, statementsInFlight: 4, maxBatchRows: 1 });
    const startedOfSix = async (): Promise<number> => {
      const verdicts = Array.from({ length: 6 }, () => put(store, uniqueName()));
      await nextTurn();
      const { statementsInFlight } = store.stats();
      await proxy.heal();
      await Promise.all(verdicts);
      return statementsInFlight;
    };
    proxy.holdReplies();
    expect(await put(store, uniqueName())).toMatchObject({ kind: "outcome_unknown", reason: "timed_out" });
    expect(await startedOfSix()).toBe(1);
    await eventually(async () => (await put(store, uniqueName())).kind).toBe("accepted");
    expect(await startedOfSix()).toBe(4);
  });

  test("G3 a write whose store closes while it is still connecting is not applied", async ({ proxy, open }) => {
    await proxy.partition();
    const store = await open();
    const verdict = put(store, uniqueName());
    await proxy.until(() => proxy.connections === 1);
    await store.close({ drainMs: 10 });
    expect(await verdict).toMatchObject({ kind: "unavailable", reason: "unreachable", outcome: "not_applied" });
  });
});

test("an idle connection that Postgres closes is reported and replaced", async ({ warm, connect }) => {
  const events: StoreEvent[] = [];
  const store = await warm({ observe: (event) => events.push(event) });
  const idle = "datname = current_database() and application_name = 'palisade-gateway'";
  await (await connect()).query(`select pg_terminate_backend(pid) from pg_stat_activity where ${idle}`);
  await eventually(() => events.some(({ kind }) => kind === "connection_error")).toBe(true);
  expect(await put(store, uniqueName())).toMatchObject({ kind: "accepted" });
});

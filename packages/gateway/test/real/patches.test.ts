// Merge patches: what they make of a document, that each is merged into the revision that it
// replaces, whoever writes at the same time, and that no document grows past its limit.
import fc from "fast-check";
import type { Verdict, WriteRequest } from "../../src/fence/verdict.js";
import type { FencedStore } from "../../src/fenced-store.js";
import { type Connect, describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put, untilSomebodyWaits } from "../support/sql.js";

const patch = (resource: string, value: string, rest: Partial<WriteRequest> = {}): WriteRequest => ({
  op: "patch",
  resource,
  token: 5,
  value,
  ...rest,
});
const answered = (verdict: Verdict | undefined): string | undefined =>
  verdict?.kind === "accepted" ? (verdict.value ?? undefined) : undefined;

async function documentOf(store: FencedStore | undefined, resource: string): Promise<string | undefined> {
  const read = await store?.readWhole(resource);
  return read?.kind === "found" ? String(read.value) : undefined;
}

/** As RFC 7396 has it, in pseudo-code. */
function reference(target: unknown, change: unknown): unknown {
  if (typeof change !== "object" || change === null || Array.isArray(change)) return change;
  const isObject = typeof target === "object" && target !== null && !Array.isArray(target);
  const result = new Map(Object.entries(isObject ? target : {}));
  for (const [key, value] of Object.entries(change)) {
    if (value === null) result.delete(key);
    else result.set(key, reference(result.get(key), value));
  }
  return Object.fromEntries(result);
}

/** There is no negative zero in Postgres. */
const parsed = (json = ""): unknown => JSON.parse(json, (_key, value) => (value === 0 ? 0 : value));

// No key is how another begins in JSON: of {"a":1,"\\":2,"b":3} JSON.parse of Node 24 to 26 remembers the second key, and takes
// it where it should read "\n" (nodejs/node#63785). The gateway parses no document; `reference` does.
const keys = fc.constantFrom("", "a", "b", "bb", "ü", "z", "𝄞", "\uffee", "a b", '"', "a\\b", "__proto__", "\n");
const number = fc.constantFrom("0", "-0", "1.10", "-1e3", "1E-2", "12345678901234567890", "0.5e1", "2.50e+1", "-0.0", "0e4", "1e40");
const text = fc.constantFrom('"x"', '"\\u00fc"', '"\\/"', '"\\ud834\\udd1e"', '"\\u0007\\t"', '"null"');
/** JSON as text, with numbers that JavaScript cannot keep, in any spelling. */
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom("null", "true", "false"),
    number,
    text,
    fc.array(tie("json"), { maxLength: 3 }).map((elements) => `[${elements.join(" ,")}]`),
    fc
      .array(fc.tuple(keys, tie("json")), { maxLength: 4 })
      .map((members) => `{ ${members.map(([key, value]) => `${JSON.stringify(key)} :${value}`).join(",")}}`),
  ),
}));

describe("a merge patch", () => {
  test("is answered with the document as it is stored, to the byte, whatever it and the patch are", async ({ store }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(json, json), { minLength: 20, maxLength: 20 }), async (cases) => {
        await Promise.all(
          cases.map(async ([target, change]) => {
            const resource = uniqueName();
            await store.write(put(resource, 1, target));
            const before = await documentOf(store, resource);
            const after = answered(await store.write(patch(resource, change)));
            expect(after).toBe(await documentOf(store, resource));
            expect(parsed(after)).toEqual(reference(parsed(before), parsed(change)));
          }),
        );
      }),
      { numRuns: 30 },
    );
  });

  test("keeps every digit of the numbers that it does not name, and of its own", async ({ store }) => {
    const resource = uniqueName();
    const digits = `1${"0".repeat(400)}`;
    await store.write(put(resource, 1, '{"a": 1e400, "b": 1.10, "c": 12345678901234567890, "d": {"e": [0.1234567890123456789]}}'));
    const change = '{"f": 98765432109876543210, "d": {"g": -9007199254740993}, "h": 1.50}';
    const expected = `{"a": ${digits}, "b": 1.10, "c": 12345678901234567890, "d": {"e": [0.1234567890123456789], "g": -9007199254740993}, "f": 98765432109876543210, "h": 1.50}`;
    expect(await store.write(patch(resource, change))).toMatchObject({ kind: "accepted", rev: 2, value: expected });
    expect(await documentOf(store, resource)).toBe(expected);
  });

  test("makes what Postgres cannot keep of nothing, alone or in a transaction", async ({ store }) => {
    const [resource, other] = [uniqueName(), uniqueName()];
    await store.write(put(resource, 1, "{}"));
    for (const value of ['{"a":"\\u0000"}', '{"a":1e200000}', '{"a":"\\ud800"}']) {
      expect(await store.write(patch(resource, value))).toMatchObject({ kind: "value_rejected" });
      expect(await store.transaction({ operations: [put(other, 5, "1"), patch(resource, value)] })).toMatchObject({
        kind: "refused",
        refusals: [{ index: 1, refusal: { kind: "value_rejected" } }],
      });
    }
    for (const value of ["nonsense", "{", '{"a":1}}', '["a" "b"]', '"\\x"', ""])
      await expect(store.write(patch(resource, value))).rejects.toThrow(TypeError);
    expect(await store.read(resource)).toMatchObject({ value: "{}", rev: 1, token: 1 });
    expect(await store.read(other)).toMatchObject({ kind: "unknown_resource" });
    expect(await store.write(patch(resource, '{"a":1}'))).toMatchObject({ kind: "accepted", rev: 2 });
  });
});

/** Another session, which changes the row by this statement and commits once somebody waits for it. */
async function rival(connect: Connect, resource: string, text: string): Promise<{ commit(): Promise<void> }> {
  const [client, observer] = [await connect(), await connect()];
  await client.query("begin");
  await client.query(text, [resource]);
  return {
    commit: async () => {
      await untilSomebodyWaits(observer);
      await client.query("commit");
    },
  };
}
const RAISES_THE_FENCE = "select palisade.guard($1, 9)";
const WRITES = `update palisade.resources set rev = rev + 1, value = value || '{"rival": true}' where resource = $1`;
const DELETES = "update palisade.resources set rev = rev + 1, deleted = true, value = null where resource = $1";

/** As many patches as the argument says change no row, as if it had another revision by then. */
const LOSE_RACES = `
  create sequence races;
  create function lose_race() returns trigger language plpgsql as
    'begin if nextval(''public.races'') <= tg_argv[0]::int then return null; end if; return new; end'`;

const ways = ["alone", "in a transaction"] as const;
/** The verdict of the one operation, however it is sent. */
async function send(store: FencedStore, way: (typeof ways)[number], request: WriteRequest): Promise<Verdict> {
  if (way === "alone") return await store.write(request);
  const verdict = await store.transaction({ operations: [request] });
  if (verdict.kind === "committed") return verdict.results[0] as Verdict;
  return verdict.kind === "refused" ? (verdict.refusals[0]?.refusal as Verdict) : verdict;
}

describe.each(ways)("a patch that races, %s", (way) => {
  test("G1 is refused when the fence rises between its reading and its storing", async ({ store, connect }) => {
    const resource = uniqueName();
    await store.write(put(resource, 5, '{"a":1}'));
    const other = await rival(connect, resource, RAISES_THE_FENCE);
    const verdict = send(store, way, patch(resource, '{"b":2}'));
    await other.commit();
    expect(await verdict).toEqual({ kind: "stale", resource, presentedToken: 5, currentToken: 9 });
    expect(await store.read(resource)).toMatchObject({ value: '{"a": 1}', rev: 1, token: 9 });
  });

  test("is merged anew into what was stored between its reading and its storing", async ({ store, connect }) => {
    const resource = uniqueName();
    await store.write(put(resource, 5, '{"a":1,"n":1}'));
    const other = await rival(connect, resource, WRITES);
    const verdict = send(store, way, patch(resource, '{"n":2}'));
    await other.commit();
    expect(await verdict).toMatchObject({ kind: "accepted", rev: 3, value: '{"a": 1, "n": 2, "rival": true}' });
  });

  test("G3 is not merged anew once the revision that it insists on is gone, nor once its document is", async ({ store, connect }) => {
    const resource = uniqueName();
    await store.write(put(resource, 5, "{}"));
    const writer = await rival(connect, resource, WRITES);
    const insisting = send(store, way, patch(resource, '{"n":2}', { expected: 1 }));
    await writer.commit();
    expect(await insisting).toEqual({ kind: "etag_mismatch", resource, currentRev: 2 });
    const eraser = await rival(connect, resource, DELETES);
    const late = send(store, way, patch(resource, '{"n":2}'));
    await eraser.commit();
    expect(await late).toEqual({ kind: "not_found", resource });
    expect(await store.read(resource)).toMatchObject({ kind: "absent", rev: 3 });
  });

  test("is given up after eight races lost, as not applied, and not before", async ({ store, connect }) => {
    const owner = await connect();
    await owner.query(LOSE_RACES);
    const resource = uniqueName();
    await store.write(put(resource, 5, "{}"));
    for (const races of [7, 8]) {
      await owner.query("select setval('races', 1, false)");
      await owner.query(`create or replace trigger lose_race before update on palisade.resources
        for each row when (new.op = 'patch') execute function lose_race(${races})`);
      const verdict = await send(store, way, patch(resource, `{"after":${races}}`));
      if (races === 7) expect(verdict).toMatchObject({ kind: "accepted", rev: 2, value: '{"after": 7}' });
      else expect(verdict).toEqual({ kind: "contention", resource, code: "race" });
      expect((await owner.query("select last_value::int as tries from races")).rows).toEqual([{ tries: 8 }]);
    }
    await owner.query("drop function lose_race cascade; drop sequence races");
    expect(await store.read(resource)).toMatchObject({ rev: 2, value: '{"after": 7}' });
  });
});

test("patches lose no race with the puts of their own gateway, however many there are", async ({ openStore }) => {
  const retried: unknown[] = [];
  const store = await openStore({ observe: (event) => event.kind === "retried" && retried.push(event) });
  const resource = uniqueName();
  await store.write(put(resource, 5, "{}"));
  const verdicts = await Promise.all(
    Array.from({ length: 60 }, (_, n) => store.write(n % 3 === 0 ? patch(resource, `{"n":${n}}`) : put(resource, 5, `{"put":${n}}`))),
  );
  expect(new Set(verdicts.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
  expect(answered(verdicts[30])).toBe('{"n": 30, "put": 29}');
  expect(retried).toEqual([]);
});

describe("a patch with a number", () => {
  test("G3 is merged once, however often it is sent and through however many gateways", async ({ openStore }) => {
    const [one, ...others] = [await openStore(), await openStore(), await openStore()] as const;
    for (let round = 0; round < 10; round += 1) {
      const resource = uniqueName();
      await one.write(put(resource, 5, '{"n":[1]}'));
      const request = patch(resource, `{"n":[${round}]}`, { seq: 4 });
      const verdicts = await Promise.all([one, ...others].map((store) => store.write(request)));
      expect(verdicts.map(({ kind }) => kind).sort()).toEqual(["accepted", "sequence_out_of_order", "sequence_out_of_order"]);
      await one.write(put(resource, 5, '{"later":true}'));
      expect(await others[0].write(request)).toEqual({ kind: "sequence_out_of_order", resource, currentSeq: 4, currentRev: 3 });
      expect(await others[1].transaction({ operations: [request] })).toMatchObject({ kind: "refused", currentRevs: [3] });
      expect(await documentOf(one, resource)).toBe('{"later": true}');
    }
  });

  test("G1 is stale before anything else, and too large only if nothing else refuses it", async ({ openStore }) => {
    const store = await openStore({ documentLimitBytes: 100 });
    const [resource, none] = [uniqueName(), uniqueName()];
    await store.write({ ...put(resource, 5, "{}"), seq: 3 });
    const large = JSON.stringify({ a: "x".repeat(100) });
    const tooLarge = { kind: "document_too_large", resource, bytes: 109, limitBytes: 100 };
    for (const way of ways) {
      const sent = (rest: Partial<WriteRequest>) => send(store, way, patch(resource, large, rest));
      expect(await sent({ token: 4 })).toMatchObject({ kind: "stale" });
      expect(await sent({ seq: 3 })).toMatchObject({ kind: "sequence_out_of_order", currentSeq: 3 });
      expect(await sent({ expected: 9 })).toMatchObject({ kind: "etag_mismatch", currentRev: 1 });
      expect(await sent({ expected: "absent" })).toMatchObject({ kind: "etag_mismatch" });
      expect(await sent({ resource: none })).toEqual({ kind: "not_found", resource: none });
      expect(await sent({ token: 6, seq: 1, expected: 1 })).toEqual(tooLarge);
    }
    expect(await store.write(patch(resource, '{"b":1}', { seq: 4, expected: "present" }))).toMatchObject({ kind: "accepted", token: 5 });
  });
});

test("G6 a patch of ten thousand members is stored within the time for a write, and so are its neighbours", async ({ openStore }) => {
  const store = await openStore({ writeTimeoutMs: 5_000 });
  const members = (value: (index: number) => unknown): string =>
    JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`member ${index}`, value(index)])));
  const resource = uniqueName("large");
  await store.write(
    put(
      resource,
      5,
      members((index) => ({ kept: index })),
    ),
  );
  const change = members((index) => (index % 2 === 0 ? null : { added: index }));
  const neighbours = Array.from({ length: 19 }, () => put(uniqueName("small"), 5, "1"));
  const verdicts = await Promise.all([patch(resource, change), ...neighbours].map((request) => store.write(request)));
  expect(new Set(verdicts.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
  const odd = Array.from({ length: 5_000 }, (_, half) => half * 2 + 1);
  const expected = Object.fromEntries(odd.map((n) => [`member ${n}`, { kept: n, added: n }]));
  expect(JSON.parse((await documentOf(store, resource)) ?? "")).toEqual(expected);
});

describe("G6 a stored document", () => {
  const limitBytes = 1_000;

  test("G6 grows by patches up to its limit, and the patch that is too much says so and changes nothing", async ({ openStore }) => {
    const store = await openStore({ documentLimitBytes: limitBytes });
    const resource = uniqueName("large");
    const grow = (members: object) => store.write(patch(resource, JSON.stringify(members)));
    await store.write(put(resource, 5, "{}"));
    expect(await grow({ a: "x".repeat(600) })).toMatchObject({ kind: "accepted", rev: 2 });
    const [refused, neighbour] = await Promise.all([grow({ b: "ü".repeat(300) }), store.write(put(uniqueName(), 5, "1"))]);
    // Both members, as they would be answered.
    expect(refused).toEqual({ kind: "document_too_large", resource, bytes: 1_218, limitBytes });
    expect(neighbour).toMatchObject({ kind: "accepted" });
    expect(await store.read(resource)).toMatchObject({ rev: 2 });
    expect(await grow({ a: null, b: "ü".repeat(300) })).toMatchObject({ kind: "accepted", rev: 3 });
  });

  test("G6 is not put when it is too large, alone or in a transaction; a seal and a delete of a larger one pass", async ({ openStore }) => {
    const [store, earlier] = [await openStore({ documentLimitBytes: limitBytes }), await openStore()];
    const [resource, other] = [uniqueName("large"), uniqueName("large")];
    const large = put(resource, 5, JSON.stringify("ü".repeat(500)));
    const tooLarge = { kind: "document_too_large", resource, bytes: 1_002, limitBytes };
    expect(await store.write(large)).toEqual(tooLarge);
    const beside = (request: WriteRequest) => store.transaction({ operations: [put(other, 5, "{}"), request] });
    expect(await beside(large)).toMatchObject({ kind: "refused", refusals: [{ index: 1, refusal: tooLarge }] });
    await earlier.write(put(resource, 5, JSON.stringify({ a: "x".repeat(2_000) })));
    const refusal = { ...tooLarge, bytes: 2_017 };
    expect(await beside(patch(resource, '{"b":1}'))).toMatchObject({ kind: "refused", refusals: [{ index: 1, refusal }] });
    expect(await store.read(other)).toMatchObject({ kind: "unknown_resource" });
    expect(await store.write({ op: "seal", resource, token: 6 })).toMatchObject({ kind: "accepted" });
    expect(await store.write({ op: "delete", resource, token: 6 })).toMatchObject({ kind: "accepted" });
  });
});

// Several resources in one request: all of it or nothing, under one token or one each.
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { type Answer, get, put, send } from "../support/wire.js";

function transact(url: string, operations: unknown, ...headers: string[]): Promise<Answer> {
  return transactText(url, JSON.stringify({ operations }), ...headers);
}

function transactText(url: string, body: string, ...headers: string[]): Promise<Answer> {
  return send(url, { method: "POST", path: "/v1/transactions", headers: ["Content-Type", "application/json", ...headers], body });
}

describe("a transaction", () => {
  test("stores everything under the token of the header", async ({ gateway: { url } }) => {
    const [one, other, third] = [uniqueName(), uniqueName(), uniqueName()];
    await put(url, other, { token: 4, value: { a: 1, b: 2 } });
    await put(url, third, { token: 4, value: {} });
    const answer = await transact(
      url,
      [
        { op: "put", resource: one, value: { n: 1 } },
        { op: "patch", resource: other, value: { b: null } },
        { op: "delete", resource: third },
        { op: "seal", resource: uniqueName() },
      ],
      "Fencing-Token",
      "5",
    );
    expect(answer).toMatchObject({
      status: 200,
      json: { results: [{ resource: one, token: 5, rev: 1 }, { rev: 2, value: { a: 1 } }, { rev: 2 }, { rev: 0, value: null }] },
    });
    expect(await get(url, one)).toMatchObject({ json: { n: 1 }, headers: { "fencing-token": "5" } });
    expect(await get(url, third)).toMatchObject({ status: 404 });
  });

  test("keeps every digit of its documents", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await transactText(url, `{"operations": [ {"value" : {"n": 12345678901234567890}, "op":"put","resource":"${name}","token":5 } ] }`);
    expect((await get(url, name)).text).toBe('{"n": 12345678901234567890}');
  });

  test("G1 with one stale operation stores nothing at all, and says which one it was", async ({ gateway: { url } }) => {
    const [one, other] = [uniqueName(), uniqueName()];
    await put(url, other, { token: 9, value: { by: 9 } });
    const answer = await transact(
      url,
      [
        { op: "put", resource: one, value: {} },
        { op: "put", resource: other, value: {} },
      ],
      "Fencing-Token",
      "5",
    );
    expect(answer).toMatchObject({
      status: 412,
      json: { code: "fencing_token_stale", operation: 1, resource: other, presentedToken: 5, currentToken: 9 },
    });
    expect(await get(url, one)).toMatchObject({ status: 404 });
    expect(await put(url, one, { token: 1, value: {} })).toMatchObject({ status: 201 });
  });

  test("G1 whose lease is lost is told so, although another of its operations is refused for a reason that would pass", async ({
    gateway: { url },
  }) => {
    const [one, other] = [uniqueName(), uniqueName()];
    await put(url, other, { token: 9, value: { by: 9 } });
    const operations = [
      { op: "put", resource: one, ifMatch: "*", value: {} },
      { op: "put", resource: other, value: {} },
    ];
    expect(await transact(url, operations, "Fencing-Token", "5")).toMatchObject({
      status: 412,
      json: { code: "fencing_token_stale", operation: 1 },
    });
  });

  test("may carry a token for each operation, and conditions", async ({ gateway: { url } }) => {
    const [one, other] = [uniqueName(), uniqueName()];
    await put(url, one, { token: 4, value: {} });
    const operations = (rev: number | string) => [
      { op: "put", resource: one, token: 7, seq: 1, ifMatch: rev, value: {} },
      { op: "put", resource: other, token: 5, ifNoneMatch: "*", value: {} },
    ];
    expect(await transact(url, operations(3))).toMatchObject({
      status: 412,
      json: { code: "etag_mismatch", operation: 0, currentETag: '"1"' },
    });
    expect(await transact(url, operations('"1"'))).toMatchObject({
      status: 200,
      json: {
        results: [
          { token: 7, rev: 2 },
          { token: 5, rev: 1 },
        ],
      },
    });
    expect(await transact(url, operations(2))).toMatchObject({ status: expect.toBeOneOf([409, 412]) });
  });

  test("G3 with a number is done once, and the repeated one is told so, whatever else would refuse it now", async ({
    gateway: { url },
  }) => {
    const [one, other, third] = [uniqueName(), uniqueName(), uniqueName()];
    await put(url, one, { token: 4, value: {} });
    const operations = [
      { op: "put", resource: one, token: 5, ifMatch: 1, value: {} },
      { op: "put", resource: other, value: {} },
      { op: "seal", resource: third },
    ];
    const send = () => transact(url, operations, "Fencing-Token", "5;seq=3");
    expect(await send()).toMatchObject({ status: 200, json: { results: [{ rev: 2 }, { rev: 1 }, { rev: 0 }] } });
    expect(await send()).toMatchObject({
      status: 409,
      json: { code: "sequence_out_of_order", operation: 1, currentSeq: 3, currentETag: '"1"', currentRevs: [2, 1, 0] },
    });
    expect(await get(url, other)).toMatchObject({ headers: { etag: '"1"' } });
  });

  test("over the same resources in opposite orders never deadlocks", async ({ gateway: { url, adminUrl } }) => {
    const names = [uniqueName(), uniqueName(), uniqueName()];
    const both = Array.from({ length: 30 }, (_, index) => {
      const order = index % 2 === 0 ? names : names.toReversed();
      return transact(
        url,
        order.map((resource) => ({ op: "put", resource, token: 5, value: { index } })),
      );
    });
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual(both.map(() => 200));
    expect(await (await fetch(`${adminUrl}/metrics`)).text()).not.toContain("40P01"); // A deadlock would have been run again unnoticed.
  });

  const put1 = { op: "put", resource: "t/1", token: 5, value: 1 };
  const malformed: readonly (readonly [what: string, body: string, code: string, status?: number])[] = [
    ["no object", "[]", "json_invalid"],
    ["no operations", "{}", "json_invalid"],
    ["an empty list", '{"operations":[]}', "json_invalid"],
    ["something beside operations", '{"operations":[],"x":1}', "json_invalid"],
    ["operations twice", '{"operations":[],"operations":[]}', "json_invalid"],
    ["an operation that is no object", '{"operations":[1]}', "json_invalid"],
    ["an unknown op", JSON.stringify({ operations: [{ ...put1, op: "drop" }] }), "json_invalid"],
    ["an unknown member", JSON.stringify({ operations: [{ ...put1, iff: 1 }] }), "json_invalid"],
    ["no value", '{"operations":[{"op":"put","resource":"t/1","token":5}]}', "json_invalid"],
    ["a value for delete", JSON.stringify({ operations: [{ ...put1, op: "delete" }] }), "json_invalid"],
    ["a condition for seal", '{"operations":[{"op":"seal","resource":"t/1","token":5,"ifMatch":1}]}', "json_invalid"],
    ["a member twice", '{"operations":[{"op":"put","resource":"t/1","resource":"t/2","token":5,"value":1}]}', "json_invalid"],
    ["a resource twice", JSON.stringify({ operations: [put1, put1] }), "json_invalid"],
    [
      "a thousand and one",
      JSON.stringify({ operations: Array.from({ length: 1_001 }, (_, n) => ({ ...put1, resource: `t/${n}` })) }),
      "json_invalid",
    ],
    ["a bad name", JSON.stringify({ operations: [{ ...put1, resource: "a/../b" }] }), "resource_name_invalid"],
    ["a token that is text", JSON.stringify({ operations: [{ ...put1, token: "5" }] }), "json_invalid"],
    ["a token that is a fraction", JSON.stringify({ operations: [{ ...put1, token: 5.5 }] }), "json_invalid"],
    ["the token 0", JSON.stringify({ operations: [{ ...put1, token: 0 }] }), "json_invalid"],
    ["a weak tag", JSON.stringify({ operations: [{ ...put1, ifMatch: 'W/"1"' }] }), "precondition_unsupported"],
    ["two conditions", JSON.stringify({ operations: [{ ...put1, ifMatch: 1, ifNoneMatch: "*" }] }), "precondition_unsupported"],
    ["__proto__ as a member", '{"operations":[{"__proto__":{"token":5},"op":"put","resource":"t/1","value":1}]}', "json_invalid"],
    ["no token at all", '{"operations":[{"op":"put","resource":"t/1","value":1}]}', "fencing_token_required", 428],
  ];
  test.for(malformed)("with %s is refused", async ([, body, code, status = 400], { gateway: { url } }) => {
    expect(await transactText(url, body)).toMatchObject({ status, json: { code } });
    expect(await get(url, "t/1")).toMatchObject({ status: 404 });
  });

  test("with a malformed token or a condition in the header is refused", async ({ gateway: { url } }) => {
    expect(await transact(url, [put1], "Fencing-Token", "x")).toMatchObject({ json: { code: "fencing_token_malformed" } });
    expect(await transact(url, [put1], "If-Match", '"1"')).toMatchObject({ json: { code: "precondition_unsupported" } });
  });
});

// Operations that are written plainly are read by a shorter way than others: both must say the
// same.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Problem } from "../../../src/http/problems.js";
import { parseOperations } from "../../../src/http/transaction.js";

const shared = { token: 7, seq: undefined };
const read = (text: string) => parseOperations(text, shared, "worker");
const body = (...operations: string[]): string => `{"operations":[${operations.join(",")}]}`;

/** A name of one member with an escape in it keeps the operation from the shorter way. */
const escaped = (operation: string): string => operation.replace('"resource":', '"\\u0072esource":');

const member = fc.oneof(
  fc.constantFrom('"op":"put"', '"op":"delete"', '"op": "put"', '"op":1', '"token":5', '"token":0', '"token":1e3', '"token":"5"'),
  fc.constantFrom(
    '"token":9999999999999999',
    '"seq":3',
    '"ifMatch":2',
    '"ifNoneMatch":"*"',
    '"value":null',
    '"value":{"token":4}',
    '"more":1',
  ),
  fc.constantFrom('"resource":"orders/1"', '"resource":"orders/\\u0031"', '"resource":"a//b"', '"resource":7', '"resource":" "'),
);

test("G2 an operation means the same, however it is written", () => {
  fc.assert(
    fc.property(fc.array(member, { maxLength: 5 }), (members) => {
      const operation = `{${['"op":"put"', '"resource":"orders/2"', '"value":1', ...members].join(" , ")}}`;
      const some = `{${members.join(",")}}`;
      for (const text of [operation, some]) expect(read(body(text))).toEqual(read(body(escaped(text))));
    }),
    { numRuns: 500 },
  );
});

test("G2 a plain put has the token that it names, or else the one of the header, and its document as it was sent", () => {
  const [own, headers] = ['{"op":"put","resource":"a","token":5,"value":1.50}', '{"value":[ 1 ],"resource":"b","op":"put"}'];
  expect(read(body(own, headers))).toEqual([
    { op: "put", resource: "a", token: 5, seq: undefined, expected: undefined, value: "1.50", holder: "worker" },
    { op: "put", resource: "b", token: 7, seq: undefined, expected: undefined, value: "[ 1 ]", holder: "worker" },
  ]);
  for (const twice of ['"op":"put"', '"resource":"a"', '"token":5', '"value":1'])
    expect(read(body(`{"op":"put","resource":"a","token":5,"value":1,${twice}}`))).toEqual(expect.any(Problem));
});

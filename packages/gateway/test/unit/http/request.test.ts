// What a request may say, piece by piece, and that nothing is guessed at. The table of what is refused:
// test/real/http-bad-input.test.ts.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resourcePath } from "../../../../client/src/request-format.js";
import { checkResourceName, parseResourceName } from "../../../src/http/names.js";
import { Problem } from "../../../src/http/problems.js";
import { parseFencingToken, parseReadCondition, parseWriteCondition, readHeaders } from "../../../src/http/request.js";
import { fencingTokenHeader } from "../../../src/http/schemas.js";
import { parseOperations } from "../../../src/http/writes.js";

const problem = (code: string) => expect.objectContaining({ code });
const number = fc.integer({ min: 1, max: 999_999_999_999_999 });

describe("the Fencing-Token header", () => {
  test("carries every valid token and sequence number", () => {
    fc.assert(
      fc.property(number, fc.option(number, { nil: undefined }), (token, seq) => {
        expect(parseFencingToken(seq === undefined ? String(token) : `${token};seq=${seq}`)).toEqual({ token, seq });
      }),
    );
  });

  test("G2 is required, and malformed unless it is exactly one number, with at most one sequence number", () => {
    expect(parseFencingToken(undefined)).toMatchObject({ code: "fencing_token_required", status: 428 });
    const numbers = ["", "0", "-1", "+1", "01", "1.0", "1e3", "0x10", "1 ", " 1", "1, 2", "1\n1", "NaN", "Infinity", "１", '"1"'];
    const sequences = ["1;seq=0", "1;seq=", "1;seq=-1", "1; seq=1", "1;SEQ=1", ";seq=1"];
    for (const field of [...numbers, "1000000000000000", "9007199254740993", ...sequences])
      expect([field, parseFencingToken(field)]).toEqual([field, problem("fencing_token_malformed")]);
  });

  test("is understood by the parser exactly where the published pattern allows it", () => {
    const nearly = fc.stringMatching(/^[0-9;seq= ,+-]{0,20}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (field) => {
        expect(parseFencingToken(field) instanceof Problem).toBe(!fencingTokenHeader.safeParse(field).success);
      }),
      { numRuns: 500 },
    );
  });

  test("G2 sent twice is malformed, whatever the two say and however they are spelled", () => {
    const spelling = fc.constantFrom("Fencing-Token", "fencing-token", "FENCING-TOKEN", "fEnCiNg-tOkEn");
    fc.assert(
      fc.property(spelling, number, spelling, number, (first, one, second, two) => {
        const { fencingToken } = readHeaders([first, String(one), "X-Other", "1", second, String(two)]);
        const twice = { code: "fencing_token_malformed", detail: expect.stringContaining("2 times") };
        expect(parseFencingToken(fencingToken)).toMatchObject(twice);
      }),
    );
  });
});

test("the condition of a write is none, one revision, any document, or no document; a tag that was never given out matches nothing", () => {
  const write = (...rawHeaders: string[]) => parseWriteCondition(readHeaders(rawHeaders));
  expect([write(), write("If-Match", '"12"'), write("If-Match", "*"), write("If-None-Match", "*")]).toEqual([
    undefined,
    12,
    "present",
    "absent",
  ]);
  for (const tag of ['"abc"', '"0"', '"012"', '"-1"', '""', '"1000000000000000"']) expect(write("If-Match", tag)).toBe(999_999_999_999_999);
});

test("the condition of a read compares weakly, with one tag or many", () => {
  const holds = (field: string): unknown => {
    const condition = parseReadCondition(readHeaders(["If-None-Match", field]));
    return typeof condition === "function" ? condition(12) : condition;
  };
  for (const field of ['"12"', 'W/"12"', '"11", W/"12"', "*"]) expect([field, holds(field)]).toEqual([field, true]);
  for (const field of ['"1"', '"112"']) expect([field, holds(field)]).toEqual([field, false]);
});

describe("a resource name", () => {
  const invalid = problem("resource_name_invalid");

  test("is percent-decoded exactly once, and may be as long as 512 bytes", () => {
    for (const [encoded, name] of [
      ["orders/42", "orders/42"],
      ["orders%2F42", "orders/42"],
      ["a%252Fb", "a%2Fb"],
      ["%E2%82%AC", "€"],
      ["what%3F%23", "what?#"],
      ["a+b", "a+b"],
      ["a".repeat(512), "a".repeat(512)],
      ["%C3%A9".repeat(256), "é".repeat(256)],
    ] as const)
      expect(parseResourceName(encoded)).toBe(name);
    for (const long of ["a".repeat(513), "%C3%A9".repeat(257), "%E2%82%AC".repeat(171)]) expect(parseResourceName(long)).toEqual(invalid);
  });

  test("never makes the parser throw, and whatever it accepts obeys the rules", () => {
    const pieces = fc.constantFrom("%", "%2F", "/", "..", ".", "%00", "a", "é", "\u0301", "%ED%A0%80", "%F0%9F%98%80", "\ud800", "?", "~");
    const encoded = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(pieces).map((list) => list.join("")),
    );
    fc.assert(
      fc.property(encoded, (text) => {
        const name = parseResourceName(text);
        if (name instanceof Problem) return;
        expect(checkResourceName(name)).toBe(name);
        expect(name.normalize("NFC")).toBe(name);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(512);
        expect(name.split("/")).not.toContain("..");
        expect(name).not.toMatch(/\p{Cc}/u);
      }),
      { numRuns: 500 },
    );
  });

  test("survives the way of the client: encoded there and decoded here it is the same, or one of them refuses it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1 }), (name) => {
        if (checkResourceName(name) instanceof Problem) return;
        const path = new URL(`http://gateway.example/v1/resources/${resourcePath(name)}`).pathname;
        expect(parseResourceName(path.slice("/v1/resources/".length))).toBe(name);
      }),
      { numRuns: 1_000 },
    );
  });
});

// Operations that are written plainly are read by a shorter way than others.
describe("the operations of a transaction", () => {
  const read = (text: string) => parseOperations(text, { token: 7, seq: undefined }, "worker");
  const body = (...operations: string[]): string => `{"operations":[${operations.join(",")}]}`;

  test("G2 mean the same, however they are written", () => {
    /** A name of one member with an escape in it keeps the operation from the shorter way. */
    const escaped = (operation: string): string => operation.replace('"resource":', '"\\u0072esource":');
    const ops = ['"op":"put"', '"op":"delete"', '"op": "put"', '"op":1'];
    const tokens = ['"token":5', '"token":0', '"token":1e3', '"token":"5"', '"token":9999999999999999', '"seq":3'];
    const rest = ['"ifMatch":2', '"ifNoneMatch":"*"', '"value":null', '"value":{"token":4}', '"more":1'];
    const names = ['"resource":"orders/1"', '"resource":"orders/\\u0031"', '"resource":"a//b"', '"resource":7', '"resource":" "'];
    const member = fc.constantFrom(...ops, ...tokens, ...rest, ...names);
    fc.assert(
      fc.property(fc.array(member, { maxLength: 5 }), (members) => {
        const operation = `{${['"op":"put"', '"resource":"orders/2"', '"value":1', ...members].join(" , ")}}`;
        const some = `{${members.join(",")}}`;
        for (const text of [operation, some]) expect(read(body(text))).toEqual(read(body(escaped(text))));
      }),
      { numRuns: 500 },
    );
  });

  test("G2 have the token that they name, or else the one of the header, and their document as it was sent", () => {
    const [own, headers] = ['{"op":"put","resource":"a","token":5,"value":1.50}', '{"value":[ 1 ],"resource":"b","op":"put"}'];
    expect(read(body(own, headers))).toEqual([
      { op: "put", resource: "a", token: 5, seq: undefined, expected: undefined, value: "1.50", holder: "worker" },
      { op: "put", resource: "b", token: 7, seq: undefined, expected: undefined, value: "[ 1 ]", holder: "worker" },
    ]);
    for (const twice of ['"op":"put"', '"resource":"a"', '"token":5', '"value":1'])
      expect(read(body(`{"op":"put","resource":"a","token":5,"value":1,${twice}}`))).toEqual(expect.any(Problem));
  });
});

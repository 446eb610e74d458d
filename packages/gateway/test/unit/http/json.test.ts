// JSON as text: what the store can keep exactly, held against JSON.parse, and taken apart without
// parsing it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { elementsOf, membersOf } from "../../../src/fence/json.js";
import { jsonFault, MAX_JSON_DEPTH } from "../../../src/http/body.js";

const limit = 1_000_000;
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const invalid = expect.objectContaining({ code: "json_invalid" });
const tooLarge = expect.objectContaining({ code: "body_too_large" });

describe("a body", () => {
  test("is refused when it has a string that the database cannot keep, or begins with a byte order mark", () => {
    for (const text of ['"\\ud83d\\ude00"', '"\\\\u0000"', '"\\"\\\\"']) expect([text, jsonFault(text, limit)]).toEqual([text, undefined]);
    const notKept = [
      '"\\u0000"',
      '{"\\u0000":1}',
      '"\\ud800"',
      '"\\udc00\\ud800"',
      '"\\ud800x\\udc00"',
      '"\\ud83d\\ude00\\ud83d"',
      "\ufeff{}",
    ];
    for (const text of notKept) expect([text, jsonFault(text, limit)]).toEqual([text, invalid]);
  });

  test("may be nested 100 levels deep and no deeper, wherever the brackets stand", () => {
    expect(jsonFault(nested(MAX_JSON_DEPTH), limit)).toBeUndefined();
    expect(jsonFault(nested(MAX_JSON_DEPTH + 1), limit)).toEqual(invalid);
    expect(jsonFault(`[${nested(99)},${nested(99)}]`, limit)).toBeUndefined();
    expect(jsonFault(JSON.stringify(nested(500)), limit)).toBeUndefined();
    expect(jsonFault("[".repeat(900_000), limit)).toEqual(invalid);
  });

  test("is refused when its numbers could not be kept exactly or would unfold past the limit", () => {
    for (const kept of ["1e99999", "1e-16000"]) expect([kept, jsonFault(kept, limit)]).toEqual([kept, undefined]);
    for (const lost of ["1e100001", "1e-16001", "1e999999999999999999999", `0.${"1".repeat(16_001)}`])
      expect([lost, jsonFault(lost, limit)]).toEqual([lost, invalid]);
    expect(jsonFault(`[${Array(20).fill("1e90000").join(",")}]`, limit)).toEqual(tooLarge);
    expect(jsonFault("1e200", 100)).toEqual(tooLarge);
  });

  test("is judged as JSON.parse judges it, for anything JSON.parse and the database have in common", () => {
    const character = fc.constantFrom(...'{}[]",:\\u0123456789eE+-. \ttfn/\u0001');
    /** JSON with one character changed, left out or put in. */
    const nearly = fc.tuple(fc.json(), fc.nat(), fc.nat(1), fc.option(character, { nil: "" })).map(([text, place, cut, put]) => {
      const at = place % (text.length + 1);
      return text.slice(0, at) + put + text.slice(at + cut);
    });
    const pieces = fc.constantFrom("{", "}", "[", "]", '"', "\\", "u", "0", "d800", ",", ":", "1", "e", "-", ".", "a");
    const wild = fc.oneof(
      fc.json(),
      nearly,
      fc.string(),
      fc.array(pieces).map((list) => list.join("")),
    );
    const parses = (text: string): boolean => {
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(wild, (text) => {
        if (jsonFault(text, limit) === undefined) expect(parses(text)).toBe(true);
        else if (parses(text)) expect(text).toMatch(/\\u0000|\\u[dD][89a-fA-F]|[eE]/);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("JSON taken apart", () => {
  test("keeps every digit and every space inside a value", () => {
    expect(membersOf(' { "a" : 12345678901234567890 , "b" : { "c" : [ 1 ] } } ')).toEqual([
      ["a", "12345678901234567890"],
      ["b", '{ "c" : [ 1 ] }'],
    ]);
    expect(elementsOf('[1.0,"]",{"a":"}"}]')).toEqual(["1.0", '"]"', '{"a":"}"}']);
    expect([membersOf("{}"), elementsOf("[ ]"), membersOf("[]"), elementsOf("1")]).toEqual([[], [], undefined, undefined]);
  });

  test("gives for any object the members, and for any array the elements, that JSON.parse sees", () => {
    const space = fc.constantFrom("", " ", "\n", "\t ", "\r\n");
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), space, fc.constantFrom(0, 2), (object, around, indent) => {
        const text = around + JSON.stringify(object, null, indent) + around;
        const members = membersOf(text) ?? [];
        expect(members.map(([key, value]) => [key, JSON.parse(value)])).toEqual(Object.entries(JSON.parse(text)));
        const list = JSON.stringify(Object.values(object), null, indent);
        expect((elementsOf(list) ?? []).map((element) => JSON.parse(element))).toEqual(JSON.parse(list));
      }),
      { numRuns: 1_000 },
    );
  });
});

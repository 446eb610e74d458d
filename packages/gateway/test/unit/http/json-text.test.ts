// JSON as text: what the store can keep exactly, held against JSON.parse.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonFault, MAX_JSON_DEPTH } from "../../../src/http/body.js";

const limit = 1_000_000;
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

describe("a body", () => {
  test("is accepted as it is when it is JSON", () => {
    const texts = [
      "null",
      "true",
      "0",
      "-0",
      '""',
      "[]",
      "{}",
      ' {"a" : [1, 2.5, -3e2]} ',
      "12345678901234567890",
      '"\\ud83d\\ude00"',
      '"😀"',
      '"\\\\u0000"',
      '"\\"\\\\"',
      "1e308",
    ];
    for (const text of texts) expect([text, jsonFault(text, limit)]).toEqual([text, undefined]);
  });

  test("is refused when it is not JSON", () => {
    const texts = [
      "",
      " ",
      "{",
      '{"a":}',
      "[1,]",
      "{a:1}",
      "'a'",
      "NaN",
      "01",
      "+1",
      "1.",
      ".5",
      "1e",
      "undefined",
      '"\t"',
      '"',
      '"\\u12"',
      '"\\x00"',
      "\ufeff{}",
      "[1] 2",
      '{"a":1}}',
    ];
    for (const text of texts) expect([text, jsonFault(text, limit)]).toEqual([text, expect.objectContaining({ code: "json_invalid" })]);
  });

  test("is refused when a string holds what the database cannot: NUL, or half of a surrogate pair", () => {
    const texts = [
      '"\\u0000"',
      '{"\\u0000":1}',
      '"\\ud800"',
      '"\\udc00"',
      '"\\udc00\\ud800"',
      '"\\ud800x\\udc00"',
      '"\\ud800\\ud800\\udc00"',
      '"\\ud83d\\ude00\\ud83d"',
      '"\\uD800\\n"',
    ];
    for (const text of texts) expect([text, jsonFault(text, limit)]).toEqual([text, expect.objectContaining({ code: "json_invalid" })]);
  });

  test("may be nested 100 levels deep and no deeper, wherever the brackets stand", () => {
    expect(jsonFault(nested(MAX_JSON_DEPTH), limit)).toBeUndefined();
    expect(jsonFault(nested(MAX_JSON_DEPTH + 1), limit)).toMatchObject({ code: "json_invalid" });
    expect(jsonFault(`[${nested(99)},${nested(99)}]`, limit)).toBeUndefined();
    expect(jsonFault(JSON.stringify(nested(500)), limit)).toBeUndefined();
    expect(jsonFault("[".repeat(900_000), limit)).toMatchObject({ code: "json_invalid" });
  });

  test("is refused when its numbers could not be kept exactly or would unfold past the limit", () => {
    expect(jsonFault("1e99999", limit)).toBeUndefined();
    expect(jsonFault("1e100001", limit)).toMatchObject({ code: "json_invalid" });
    expect(jsonFault("1e-16000", limit)).toBeUndefined();
    expect(jsonFault("1e-16001", limit)).toMatchObject({ code: "json_invalid" });
    expect(jsonFault("1e999999999999999999999", limit)).toMatchObject({ code: "json_invalid" });
    expect(jsonFault(`0.${"1".repeat(16_001)}`, limit)).toMatchObject({ code: "json_invalid" });
    expect(jsonFault(`[${Array(20).fill("1e90000").join(",")}]`, limit)).toMatchObject({ code: "body_too_large" });
    expect(jsonFault("1e200", 100)).toMatchObject({ code: "body_too_large" });
  });

  test("is never quoted in what is said about it", () => {
    const problem = jsonFault('{"password":"swordfish", oops}', limit);
    expect(JSON.stringify(problem)).not.toContain("swordfish");
    expect(JSON.stringify(problem)).not.toContain("oops");
  });

  test("is judged as JSON.parse judges it, for anything JSON.parse and the database have in common", () => {
    const character = fc.constantFrom(...'{}[]",:\\u0123456789eE+-. \ttfn/\u0001');
    /** JSON with one character changed, left out or put in. */
    const nearly = fc.tuple(fc.json(), fc.nat(), fc.nat(1), fc.option(character, { nil: "" })).map(([text, place, cut, put]) => {
      const at = place % (text.length + 1);
      return text.slice(0, at) + put + text.slice(at + cut);
    });
    const wild = fc.oneof(
      fc.json(),
      nearly,
      fc.string(),
      fc
        .array(fc.constantFrom("{", "}", "[", "]", '"', "\\", "u", "0", "d800", ",", ":", "1", "e", "-", ".", "a"))
        .map((list) => list.join("")),
    );
    fc.assert(
      fc.property(wild, (text) => {
        const parses = attempt(text);
        if (jsonFault(text, limit) === undefined) expect(parses).toBe(true);
        else if (parses) expect(text).toMatch(/\\u0000|\\u[dD][89a-fA-F]|[eE]/);
      }),
      { numRuns: 5_000 },
    );
  });

  test("with any well-formed value is accepted", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        expect(jsonFault(JSON.stringify(value), limit)).toBeUndefined();
      }),
    );
  });
});

function attempt(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

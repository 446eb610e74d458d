// JSON Patch without a store: what a patch may say, and what it makes of a document.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type PatchOperation, parseJsonPatch, patched } from "../../../src/http/json-patch.js";
import { isSame, textOf, treeOf } from "../../../src/http/json-tree.js";
import { Problem } from "../../../src/http/problem.js";

const LIMIT = 1_000;
const parsed = (patch: unknown): readonly PatchOperation[] => {
  const operations = parseJsonPatch(typeof patch === "string" ? patch : JSON.stringify(patch));
  if (operations instanceof Problem) throw new Error(operations.detail);
  return operations;
};
const apply = (document: string, patch: unknown, limit = LIMIT): string | Problem => patched(document, parsed(patch), limit);

describe("a JSON patch", () => {
  test.each([
    ['{"a":1}', [{ op: "add", path: "/b", value: 2 }], '{"a":1,"b":2}'],
    ['{"a":1}', [{ op: "add", path: "/a", value: 2 }], '{"a":2}'],
    ["[1,2]", [{ op: "add", path: "/1", value: 9 }], "[1,9,2]"],
    ["[1,2]", [{ op: "add", path: "/-", value: 9 }], "[1,2,9]"],
    ["[1,2]", [{ op: "add", path: "/2", value: [] }], "[1,2,[]]"],
    ['{"a":1}', [{ op: "add", path: "", value: null }], "null"],
    ['{"a":{"b":[1,2]}}', [{ op: "remove", path: "/a/b/0" }], '{"a":{"b":[2]}}'],
    ['{"a":1}', [{ op: "replace", path: "/a", value: { b: 1 } }], '{"a":{"b":1}}'],
    ["[1,2]", [{ op: "replace", path: "/0", value: 3 }], "[3,2]"],
    ["[1]", [{ op: "replace", path: "", value: {} }], "{}"],
    ["[1,2,3]", [{ op: "move", from: "/0", path: "/2" }], "[2,3,1]"],
    ['{"a":{"b":1},"c":{}}', [{ op: "move", from: "/a/b", path: "/c/d" }], '{"a":{},"c":{"d":1}}'],
    ['{"a":1}', [{ op: "move", from: "/a", path: "/a" }], '{"a":1}'],
    [
      '{"a":[1]}',
      [
        { op: "copy", from: "/a", path: "/b" },
        { op: "add", path: "/b/-", value: 2 },
      ],
      '{"a":[1],"b":[1,2]}',
    ],
    [
      '{"a~/b":1,"":2}',
      [
        { op: "remove", path: "/a~0~1b" },
        { op: "replace", path: "/", value: 3 },
      ],
      '{"":3}',
    ],
    ['{"~1":1}', [{ op: "remove", path: "/~01" }], "{}"],
    [
      '{"__proto__":1}',
      [
        { op: "add", path: "/__proto__", value: { x: 1 } },
        { op: "add", path: "/y", value: 1 },
      ],
      '{"__proto__":{"x":1},"y":1}',
    ],
    ['{"a":1}', [{ op: "test", path: "/a", value: 1, unknown: "is passed over" }], '{"a":1}'],
    ["{}", [], "{}"],
  ])("makes of %s by %j %s", (document, patch, expected) => {
    expect(apply(document, patch)).toBe(expected);
  });

  test("G3 changes no digit of what it does not name", () => {
    const document = '{"a": 12345678901234567890, "b": 1.50, "c": [0.1000000000000000055, 1e400], "d": "\\u00e9"}';
    expect(apply(document, '[{"op":"add","path":"/e","value":98765432109876543210.0}]')).toBe(
      '{"a":12345678901234567890,"b":1.50,"c":[0.1000000000000000055,1e400],"d":"\\u00e9","e":98765432109876543210.0}',
    );
  });

  test.each([
    ['{"a":1}', { op: "remove", path: "/b" }],
    ['{"a":1}', { op: "replace", path: "/b", value: 1 }],
    ['{"a":1}', { op: "add", path: "/b/c", value: 1 }],
    ['{"a":1}', { op: "add", path: "/a/b", value: 1 }],
    ["[1]", { op: "add", path: "/2", value: 1 }],
    ["[1]", { op: "add", path: "/01", value: 1 }],
    ["[1]", { op: "add", path: "/1e0", value: 1 }],
    ["[1]", { op: "replace", path: "/-", value: 1 }],
    ["[1]", { op: "remove", path: "/-1" }],
    ["[1]", { op: "remove", path: "/length" }],
    ["{}", { op: "remove", path: "/constructor" }],
    ["{}", { op: "copy", from: "/a", path: "/b" }],
    ["{}", { op: "move", from: "/a", path: "/b" }],
    ['{"a":"1"}', { op: "test", path: "/a", value: 1 }],
    ['{"a":null}', { op: "test", path: "/b", value: null }],
  ])("is refused whole where an operation does not fit: %s, %j", (document, operation) => {
    const patch = [{ op: "test", path: "", value: JSON.parse(document) }, operation];
    expect(apply(document, patch)).toMatchObject({ code: "patch_failed", facts: { operation: 1 } });
  });

  test("tells of a document that is not as it was expected nothing but that", () => {
    const refused = apply('{"secret":"xyzzy"}', [{ op: "test", path: "/secret", value: "plugh" }]);
    expect(refused instanceof Problem && refused.detail).toBe("Operation 0 (test): the value is another one.");
  });

  test.each([
    ["{}", "array"],
    ["[1]", "Operation 0: path"],
    ['[{"op":"add","path":"/a"}]', "needs a value"],
    ['[{"op":"copy","path":"/a"}]', "needs from"],
    ['[{"op":"remove","path":"a"}]', "path must be"],
    ['[{"op":"remove","path":"/~2"}]', "path must be"],
    ['[{"op":"remove","path":1}]', "path must be"],
    ['[{"op":"remove","path":""}]', "DELETE"],
    ['[{"op":"move","from":"/a","path":"/a/b"}]', "into itself"],
    ['[{"op":"merge","path":"/a"}]', "op must be"],
    [JSON.stringify(Array.from({ length: 1_001 }, () => ({ op: "remove", path: "/a" }))), "at most 1000"],
  ])("is refused as such when it is none: %s", (text, why) => {
    expect(parseJsonPatch(text)).toMatchObject({ code: "json_invalid", detail: expect.stringContaining(why) });
  });

  test("G6 makes no more of a document than its limit, however often it copies what it copied", () => {
    const doubling = Array.from({ length: 12 }, () => ({ op: "copy", from: "", path: "/-" }));
    expect(apply("[1,2]", doubling)).toMatchObject({ code: "document_too_large", facts: { limitBytes: LIMIT } });
    const undone = Array.from({ length: 20 }, () => [
      { op: "copy", from: "/a", path: "/b" },
      { op: "remove", path: "/b" },
    ]).flat();
    expect(apply(JSON.stringify({ a: "x".repeat(100) }), undone)).toMatchObject({ code: "document_too_large" });
    const large = JSON.stringify({ a: "x".repeat(2 * LIMIT) });
    expect(apply(large, [{ op: "remove", path: "/a" }])).toMatchObject({ code: "document_too_large" });
    expect(apply("[]", [{ op: "add", path: "/-", value: "x".repeat(LIMIT) }])).toMatchObject({ code: "document_too_large" });
    expect(apply("[]", '[{"op":"add","path":"/0","value":1e900},{"op":"copy","from":"/0","path":"/1"}]')).toMatchObject({
      code: "body_too_large",
    });
  });

  test("G6 nests a document no deeper than a body may be, in however many steps", () => {
    const deep = "[".repeat(60) + "]".repeat(60);
    const inside = `${"/0".repeat(59)}/-`;
    expect(apply(deep, `[{"op":"add","path":"${inside}","value":${deep}}]`)).toMatchObject({ code: "json_invalid" });
    // The path leads through 90 arrays, and each step puts what there is into 90 more.
    const shell = JSON.parse("[".repeat(90) + "]".repeat(90));
    const deeper = Array.from({ length: 300 }, () => [
      { op: "add", path: "/shell", value: shell },
      { op: "move", from: "/a", path: `/shell${"/0".repeat(90)}` },
      { op: "move", from: "/shell", path: "/a" },
    ]).flat();
    expect(apply('{"a":1}', deeper)).toMatchObject({ code: "json_invalid", detail: expect.stringContaining("deeper than 100") });
    const copied = [...deeper, { op: "copy", from: "/a", path: "/b" }];
    expect(apply('{"a":1}', copied)).toMatchObject({ code: "json_invalid", detail: expect.stringContaining("deeper than 100") });
    expect(apply('{"a":1}', [...deeper, { op: "remove", path: "/a" }])).toBe("{}");
  });
});

describe("a value", () => {
  test.each([
    ["1.0", "1", true],
    ["-0", "0", true],
    ["1e2", "100", true],
    ["0.10e1", "1", true],
    ["12345678901234567890", "12345678901234567891", false],
    ["1", "-1", false],
    ["10", "1", false],
    ['"\\u0061"', '"a"', true],
    ['"1"', "1", false],
    ['"true"', "true", false],
    ["null", "false", false],
    ['{"a":1,"b":[2]}', '{ "b" : [2.0], "a" : 1 }', true],
    ['{"a":1}', '{"b":1}', false],
    ["[1,2]", "[2,1]", false],
    ["[]", "{}", false],
    ["[1]", "[1,1]", false],
  ])("%s is tested against %s: %s", (one, other, expected) => {
    expect([isSame(treeOf(one), treeOf(other)), isSame(treeOf(other), treeOf(one))]).toEqual([expected, expected]);
  });

  test("that is long is tested in one pass", () => {
    const [one, other] = [`1${"0".repeat(90_000)}1`, `1${"0".repeat(90_000)}2`];
    expect(isSame(treeOf(`${one}.0`), treeOf(one))).toBe(true);
    expect(isSame(treeOf(one), treeOf(other))).toBe(false);
  });

  test("is written as it was read, whatever it is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(JSON.parse(textOf(treeOf(text)))).toEqual(JSON.parse(text));
        expect(isSame(treeOf(text), treeOf(JSON.stringify(value)))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

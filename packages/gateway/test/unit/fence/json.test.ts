// Taking JSON apart without parsing it: the pieces, put together again, are the whole.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { elementsOf, membersOf } from "../../../src/fence/json.js";

const space = fc.constantFrom("", " ", "\n", "\t ", "\r\n");

describe("JSON taken apart", () => {
  test("keeps every digit and every space inside a value", () => {
    expect(membersOf(' { "a" : 12345678901234567890 , "b" : { "c" : [ 1 ] } } ')).toEqual([
      ["a", "12345678901234567890"],
      ["b", '{ "c" : [ 1 ] }'],
    ]);
    expect(elementsOf('[1.0,"]",{"a":"}"}]')).toEqual(["1.0", '"]"', '{"a":"}"}']);
    expect(membersOf("{}")).toEqual([]);
    expect(elementsOf("[ ]")).toEqual([]);
    expect(membersOf("[]")).toBeUndefined();
    expect(elementsOf("1")).toBeUndefined();
  });

  test("gives for any object the members JSON.parse sees", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), space, fc.constantFrom(0, 2), (object, around, indent) => {
        const text = around + JSON.stringify(object, null, indent) + around;
        const members = membersOf(text) ?? [];
        expect(members.map(([key, value]) => [key, JSON.parse(value)])).toEqual(Object.entries(JSON.parse(text)));
      }),
      { numRuns: 1_000 },
    );
  });

  test("gives for any array the elements JSON.parse sees", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(0, 2), (array, indent) => {
        const text = JSON.stringify(array, null, indent);
        expect((elementsOf(text) ?? []).map((element) => JSON.parse(element))).toEqual(JSON.parse(text));
      }),
      { numRuns: 1_000 },
    );
  });
});

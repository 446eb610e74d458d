// Conditions: two are honoured, and every other is refused instead of ignored.
import { describe, expect, test } from "vitest";
import { parseReadCondition, parseWriteCondition, readHeaders } from "../../../src/http/request.js";

const write = (...rawHeaders: string[]) => parseWriteCondition(readHeaders(rawHeaders));
const unsupported = expect.objectContaining({ code: "precondition_unsupported", status: 400 });

describe("the conditions of a write", () => {
  test("are none, one revision, any document, or no document", () => {
    expect(write()).toBeUndefined();
    expect(write("If-Match", '"12"')).toBe(12);
    expect(write("If-Match", "*")).toBe("present");
    expect(write("If-None-Match", "*")).toBe("absent");
  });

  test("may name an entity tag that was never given out: it matches nothing", () => {
    for (const tag of ['"abc"', '"0"', '"012"', '"-1"', '""', '"1000000000000000"'])
      expect(write("If-Match", tag)).toBe(999_999_999_999_999);
  });

  test("are refused when they are weak, lists, repeated, combined, malformed or unknown", () => {
    const headers = [
      ["If-Match", 'W/"12"'],
      ["If-Match", '"12", "13"'],
      ["If-Match", "12"],
      ["If-Match", ""],
      ["If-Match", '"12"', "If-Match", '"12"'],
      ["If-Match", '"12"', "If-None-Match", "*"],
      ["If-None-Match", '"12"'],
      ["If-None-Match", "*, *"],
      ["If-Modified-Since", "Sat, 29 Oct 1994 19:43:31 GMT"],
      ["If-Unmodified-Since", "Sat, 29 Oct 1994 19:43:31 GMT"],
      ["If-Range", '"12"'],
      ["If-Match", '"12"', "IF-RANGE", '"12"'],
    ];
    for (const list of headers) expect([list, write(...list)]).toEqual([list, unsupported]);
  });
});

describe("the condition of a read", () => {
  const holds = (field: string, revision: number): unknown => {
    const condition = parseReadCondition(readHeaders(["If-None-Match", field]));
    return typeof condition === "function" ? condition(revision) : condition;
  };

  test("compares weakly, with one tag or many", () => {
    expect(holds('"12"', 12)).toBe(true);
    expect(holds('W/"12"', 12)).toBe(true);
    expect(holds('"11", W/"12"', 12)).toBe(true);
    expect(holds("*", 12)).toBe(true);
    expect(holds('"1"', 12)).toBe(false);
    expect(holds('"112"', 12)).toBe(false);
  });

  test("is refused when it is something else", () => {
    for (const field of ["12", '"12" "13"', "", '"12",']) expect([field, holds(field, 12)]).toEqual([field, unsupported]);
    expect(parseReadCondition(readHeaders(["If-Match", '"12"']))).toEqual(unsupported);
    expect(parseReadCondition(readHeaders(["If-Modified-Since", "x"]))).toEqual(unsupported);
  });
});

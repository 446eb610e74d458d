// Resource names: decoded once, and refused whenever two hops could disagree about them.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resourcePath } from "../../../../client/src/request-format.js";
import { checkResourceName, parseResourceName } from "../../../src/http/names.js";
import { Problem } from "../../../src/http/problems.js";

const refused = expect.objectContaining({ code: "resource_name_invalid", status: 400 });

describe("a resource name", () => {
  test("is percent-decoded exactly once", () => {
    expect(parseResourceName("orders/42")).toBe("orders/42");
    expect(parseResourceName("orders%2F42")).toBe("orders/42");
    expect(parseResourceName("a%252Fb")).toBe("a%2Fb");
    expect(parseResourceName("%E2%82%AC")).toBe("€");
    expect(parseResourceName("what%3F%23")).toBe("what?#");
    expect(parseResourceName("a+b")).toBe("a+b");
    expect(parseResourceName("%61")).toBe("a");
  });

  test("is refused when it is empty, too long, unsafe or ambiguous", () => {
    const names = [
      "",
      "a".repeat(513),
      "%E2%82%AC".repeat(171),
      "a".repeat(10_000),
      "a%00b",
      "a%0Ab",
      "a%7Fb",
      "a%C2%85b",
      "..",
      ".",
      "a/../b",
      "a/./b",
      "a/..",
      "../a",
      "a%2F..%2Fb",
      "a/%2E%2E/b",
      "/a",
      "a/",
      "a//b",
      "a%2F%2Fb",
      "e%CC%81",
      "a%",
      "a%2",
      "a%zz",
      "%C0%AF",
      "%ED%A0%80",
      "%FF",
      "a?b",
      "a#b",
      "a b",
      "caf\u00c3\u00a9",
      'a"b',
      "a\\b",
      "a|b",
    ];
    for (const name of names) expect([name, parseResourceName(name)]).toEqual([name, refused]);
  });

  test("may be as long as 512 bytes, and no character counts as less than its bytes", () => {
    expect(parseResourceName("a".repeat(512))).toHaveLength(512);
    expect(parseResourceName("%C3%A9".repeat(256))).toHaveLength(256);
    expect(parseResourceName("%C3%A9".repeat(257))).toEqual(refused);
  });

  test("never makes the parser throw, and whatever it accepts obeys the rules", () => {
    const pieces = fc.constantFrom("%", "%2F", "/", "..", ".", "%00", "a", "é", "\u0301", "%ED%A0%80", "%F0%9F%98%80", "\ud800", "?", "~");
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.array(pieces).map((list) => list.join("")),
        ),
        (encoded) => {
          const name = parseResourceName(encoded);
          if (name instanceof Problem) return;
          expect(checkResourceName(name)).toBe(name);
          expect(name.normalize("NFC")).toBe(name);
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(512);
          expect(name.split("/")).not.toContain("..");
          expect(name).not.toMatch(/\p{Cc}/u);
        },
      ),
      { numRuns: 5_000 },
    );
  });

  test("survives the way of the client: encoded there and decoded here it is the same, or one of them refuses it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1 }), (name) => {
        if (checkResourceName(name) instanceof Problem) return;
        const path = new URL(`http://gateway.example/v1/resources/${resourcePath(name)}`).pathname;
        expect(parseResourceName(path.slice("/v1/resources/".length))).toBe(name);
      }),
      { numRuns: 2_000 },
    );
  });
});

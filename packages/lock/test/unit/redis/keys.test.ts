// Names: the keys of a resource are its own.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Keys, keysOf } from "../../../src/protocol/verbs.js";

const namespaces = fc.stringMatching(/^[A-Za-z0-9._:/@-]{1,20}$/);
// Words of our own key names, to provoke collisions.
const words = fc.constantFrom(
  "a",
  "A",
  ":",
  "{",
  "}",
  "_",
  "-",
  "%3A",
  " ",
  "lock",
  "token",
  "inbox",
  "queue",
  "floor",
  "node",
  "1",
  "é",
  "e\u0301",
  "\0",
);
const texts = fc.array(words, { minLength: 1, maxLength: 6 });
const resources = texts.map((parts) => parts.join(""));
/** Two that differ in one word: what is replaced, cut off or folded would make them one. */
const neighbours = fc.tuple(texts, fc.nat(5), words).map(([parts, at, word]) => {
  const place = at % parts.length;
  return [parts.join(""), parts.with(place, word).join("")] as const;
});

function allOf(keys: Keys, resource: string): readonly string[] {
  return [keys.lock(resource), keys.token(resource)];
}

describe("keys", () => {
  test("different resources of different namespaces never share a key or channel", () => {
    fc.assert(
      fc.property(namespaces, namespaces, resources, resources, (firstSpace, secondSpace, first, second) => {
        fc.pre(firstSpace !== secondSpace || first !== second);
        const [ours, theirs] = [keysOf(firstSpace, "inbox"), keysOf(secondSpace, "inbox")];
        const names = new Set([...allOf(ours, first), ours.node, ours.inboxChannel]);
        expect(names.size).toBe(4);
        for (const name of allOf(theirs, second)) expect(names.has(name)).toBe(false);
        for (const name of allOf(theirs, first)) expect([theirs.node, theirs.inboxChannel]).not.toContain(name);
      }),
    );
  });

  test("resources of one namespace whose names differ in one character are different resources", () => {
    fc.assert(
      fc.property(namespaces, neighbours, (namespace, [first, second]) => {
        fc.pre(first !== second);
        const keys = keysOf(namespace, "inbox");
        const names = new Set([...allOf(keys, first), ...allOf(keys, second)]);
        expect(names.size).toBe(4);
      }),
      { numRuns: 500 },
    );
  });

  test("a namespace that has a brace, or no character, is refused", () => {
    for (const namespace of ["", "a{b", "a}b"]) expect(() => keysOf(namespace, "inbox")).toThrow(RangeError);
  });
});

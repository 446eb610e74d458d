// Where a page of names ends: the bound must mean the same to JavaScript and to Postgres, which
// compares bytes.
import fc from "fast-check";
import { expect, test } from "vitest";
import { firstNameAfter } from "../../../src/store/reads.js";

test("the first name after a prefix is above every name that carries it and not above any other", () => {
  const name = fc.string({ unit: "binary", minLength: 1, maxLength: 6 });
  const bytes = (text: string): Buffer => Buffer.from(text);
  fc.assert(
    fc.property(name, name, (prefix, other) => {
      const end = firstNameAfter(prefix);
      if (end === undefined) return;
      expect(Buffer.compare(bytes(`${prefix}${other}`), bytes(end))).toBe(-1);
      if (Buffer.compare(bytes(other), bytes(end)) < 0 && Buffer.compare(bytes(other), bytes(prefix)) >= 0)
        expect(other.startsWith(prefix)).toBe(true);
    }),
  );
});

// spec/wire.md names every code with its status, and no other.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { problemCodes, statusOf } from "../../../src/http/problems.js";

const document = readFileSync(new URL("../../../../../spec/wire.md", import.meta.url), "utf8");
const rows = [...document.matchAll(/^\| \**([\d ]+?)\** *\| (.*?) *\|/gm)].flatMap(([, statuses = "", codes = ""]) =>
  [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code = ""]) => ({ code, statuses: statuses.trim().split(" ").map(Number) })),
);

describe("the document of the wire format", () => {
  test("has every code once", () => {
    expect(rows.map(({ code }) => code).toSorted()).toEqual(problemCodes.toSorted());
  });

  test("has each beside its status", () => {
    for (const { code, statuses } of rows)
      expect([code, statuses]).toEqual([code, expect.arrayContaining([statusOf(code as (typeof problemCodes)[number])])]);
  });
});

// The contract as a whole: codes, statuses, and that server, client, OpenAPI document and
// spec/wire.md agree on them.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { problemCodes as clientCodes } from "../../../../client/src/results.js";
import { openApiDocument, openApiText } from "../../../src/http/openapi.js";
import { problemCodes, statusOf } from "../../../src/http/problems.js";

describe("the contract", () => {
  test("is the same for the client, and in spec/wire.md each code stands once, beside its status", () => {
    expect(new Set(clientCodes)).toEqual(new Set(problemCodes));
    const document = readFileSync(new URL("../../../../../spec/wire.md", import.meta.url), "utf8");
    const rows = [...document.matchAll(/^\| \**([\d ]+?)\** *\| (.*?) *\|/gm)].flatMap(([, statuses = "", codes = ""]) =>
      [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code = ""]) => ({ code, statuses: statuses.trim().split(" ").map(Number) })),
    );
    expect(rows.map(({ code }) => code).toSorted()).toEqual(problemCodes.toSorted());
    for (const { code, statuses } of rows) {
      const status = statusOf(code as (typeof problemCodes)[number]);
      expect([code, statuses]).toEqual([code, expect.arrayContaining([status])]);
    }
  });

  test("is published as OpenAPI 3.1 in which every reference leads somewhere and no code is missing", () => {
    const document = openApiDocument();
    const text = openApiText();
    expect(JSON.parse(text)).toEqual(document);
    const references = new Set([...text.matchAll(/"\$ref":"#([^"]+)"/g)].map(([, pointer = ""]) => pointer));
    expect(references.size).toBeGreaterThan(8);
    for (const pointer of references) expect([pointer, at(document, pointer)]).toEqual([pointer, expect.any(Object)]);
    const unnamed = problemCodes.filter(
      (code) => !Object.values(document.paths as object).some((path) => JSON.stringify(path).includes(`"${code}"`)),
    );
    // Answers to requests that are no operation.
    expect(unnamed).toEqual(["route_not_found", "expectation_failed"]);
  });

  test("marks every token, sequence number and revision as a number of 64 bits", () => {
    const narrow: string[] = [];
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return;
      const { type, format } = value as { type?: unknown; format?: unknown };
      if (type === "integer" && format !== "int64") narrow.push(path);
      for (const [key, member] of Object.entries(value)) walk(member, `${path}/${key}`);
    };
    walk(openApiDocument(), "");
    // None counts anything that grows.
    expect(narrow).toEqual([
      expect.stringMatching(/\/Problem\/properties\/status$/),
      expect.stringMatching(/\/Problem\/properties\/documentBytes$/),
      expect.stringMatching(/\/Problem\/properties\/limitBytes$/),
      expect.stringMatching(/\/Problem\/properties\/operation$/),
    ]);
  });
});

function at(document: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}

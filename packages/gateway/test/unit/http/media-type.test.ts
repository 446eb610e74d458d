// Media types and queries: the small parsers.
import { describe, expect, test } from "vitest";
import { mediaTypeFault } from "../../../src/http/body.js";
import { parseQuery, readHeaders } from "../../../src/http/request.js";
import { listQuery } from "../../../src/http/schemas.js";

const judge = (purpose: "document" | "merge_patch", ...rawHeaders: string[]) => mediaTypeFault(readHeaders(rawHeaders), purpose)?.code;

describe("a media type", () => {
  test("is JSON in UTF-8, by any spelling", () => {
    for (const type of ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"']) {
      expect([type, judge("document", "Content-Type", type)]).toEqual([type, undefined]);
    }
    expect(judge("merge_patch", "Content-Type", "application/merge-patch+json")).toBeUndefined();
    expect(judge("document", "Content-Type", "application/json", "Content-Encoding", "identity")).toBeUndefined();
  });

  test("is refused when it is anything else", () => {
    for (const type of [
      "text/plain",
      "application/json-patch+json",
      "application/json; charset=latin1",
      "application/json; x=y",
      "application/jsonx",
      "",
      "*/*",
    ]) {
      expect([type, judge("merge_patch", "Content-Type", type)]).toEqual([type, "media_type_unsupported"]);
    }
    expect(judge("document", "Content-Type", "application/merge-patch+json")).toBe("media_type_unsupported");
    expect(judge("document")).toBe("media_type_unsupported");
    expect(judge("document", "Content-Type", "application/json", "Content-Type", "application/json")).toBe("media_type_unsupported");
    for (const encoding of ["gzip", "br", "identity, gzip"]) {
      expect(judge("document", "Content-Type", "application/json", "Content-Encoding", encoding)).toBe("media_type_unsupported");
    }
  });
});

describe("a query", () => {
  test("is read as forms are written", () => {
    expect(parseQuery("/v1/resources?prefix=a%2Fb+c&limit=7", listQuery)).toEqual({ prefix: "a/b c", limit: 7, include: "fences" });
    expect(parseQuery("/v1/resources", listQuery)).toEqual({ prefix: "", limit: 100, include: "fences" });
  });

  test("is refused when a parameter is unknown, repeated, malformed or out of range", () => {
    for (const query of [
      "limit=0",
      "limit=1001",
      "limit=-1",
      "limit=1e2",
      "limit=",
      "limit=1&limit=2",
      "x=1",
      "prefix=%ff",
      "prefix=%",
      "include=all",
      "cursor=%20",
      "__proto__=1",
      "limit[]=1",
    ]) {
      expect([query, parseQuery(`/v1/resources?${query}`, listQuery)]).toEqual([query, expect.objectContaining({ code: "query_invalid" })]);
    }
  });
});

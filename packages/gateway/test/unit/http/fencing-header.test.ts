// The Fencing-Token header: what is accepted, and that nothing else is.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Problem } from "../../../src/http/problems.js";
import { parseFencingToken, readHeaders } from "../../../src/http/request.js";
import { fencingTokenHeader } from "../../../src/http/schemas.js";

const number = fc.integer({ min: 1, max: 999_999_999_999_999 });

describe("the Fencing-Token header", () => {
  test("carries every valid token and sequence number", () => {
    fc.assert(
      fc.property(number, fc.option(number, { nil: undefined }), (token, seq) => {
        expect(parseFencingToken(seq === undefined ? String(token) : `${token};seq=${seq}`)).toEqual({ token, seq });
      }),
    );
  });

  test("G2 is malformed unless it is exactly one number, with at most one sequence number", () => {
    const malformed = [
      "",
      "0",
      "-1",
      "+1",
      "01",
      "1.0",
      "1e3",
      "0x10",
      "1 ",
      " 1",
      "1, 2",
      "1\n2",
      "1\n1",
      "1000000000000000",
      "9007199254740993",
      "1;seq=0",
      "1;seq=",
      "1;seq=-1",
      "1;seq=1000000000000000",
      "1; seq=1",
      "1;SEQ=1",
      "1;seq=1;seq=2",
      "1;other=1",
      ";seq=1",
      "NaN",
      "Infinity",
      "１",
      "1\u00002",
      '"1"',
    ];
    for (const field of malformed)
      expect([field, parseFencingToken(field)]).toEqual([field, expect.objectContaining({ code: "fencing_token_malformed" })]);
  });

  test("G2 is required: without it there is a problem of its own", () => {
    expect(parseFencingToken(undefined)).toMatchObject({ code: "fencing_token_required", status: 428 });
  });

  test("is understood by the parser exactly where the published pattern allows it", () => {
    const nearly = fc.stringMatching(/^[0-9;seq= ,+-]{0,20}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (field) => {
        expect(parseFencingToken(field) instanceof Problem).toBe(!fencingTokenHeader.safeParse(field).success);
      }),
      { numRuns: 2_000 },
    );
  });

  test("sent twice is malformed, whatever the two say and however they are spelled", () => {
    const spelling = fc.constantFrom("Fencing-Token", "fencing-token", "FENCING-TOKEN", "fEnCiNg-tOkEn");
    fc.assert(
      fc.property(spelling, number, spelling, number, (first, one, second, two) => {
        const { fencingToken } = readHeaders([first, String(one), "X-Other", "1", second, String(two)]);
        expect(parseFencingToken(fencingToken)).toMatchObject({
          code: "fencing_token_malformed",
          detail: expect.stringContaining("2 times"),
        });
      }),
    );
  });
});

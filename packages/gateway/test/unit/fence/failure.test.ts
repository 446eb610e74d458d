// What each error means for a write that was under way. A wrong line would misinform a client, so
// every class of SQLSTATE is listed.
import pg from "pg";
import { describe, expect, test } from "vitest";
import { connectFailure, endsSession, failureOf } from "../../../src/fence/failure.js";

function fromPostgres(code: string, severity = "ERROR"): Error {
  return Object.assign(new pg.DatabaseError("told", 4, "error"), { code, severity });
}
const outdatedPlan = Object.assign(fromPostgres("0A000"), { routine: "RevalidateCachedQuery" });

const meaning = (error: Error): string => {
  const failure = failureOf(error);
  return "reason" in failure ? `${failure.kind} ${failure.reason}` : failure.kind;
};

describe("G3 after sending", () => {
  const codesOf: Readonly<Record<string, string>> = {
    "unknown connection_lost": "08000 08006 08P01 57P01 57P02 57P03",
    "unavailable read_only": "25006",
    "unavailable refused": "53100 53200 53300 42P01 42501 0A000",
    retry: "40001 40P01 26000",
    retry_alone: "55P03 57014 22P02 22P05 22003 23505 23514 54001 XX000 58030 PLS05",
  };
  const table = Object.entries(codesOf).flatMap(([told, codes]) => codes.split(" ").map((code) => [code, told] as const));

  test("G3 each SQLSTATE has one meaning", () => {
    expect(table.map(([code]) => [code, meaning(fromPostgres(code))])).toEqual(table);
  });

  test("G3 of what an engine does not support, only a plan that a migration outdated is run again", () => {
    expect(meaning(outdatedPlan)).toBe("retry");
    expect(endsSession(failureOf(outdatedPlan))).toBe(true);
    expect(meaning(Object.assign(fromPostgres("0A000"), { routine: "transformOnConflictClause" }))).toBe("unavailable refused");
  });

  test("G3 an error that ends the session leaves the write unknown, whatever its code, and in whatever language", () => {
    for (const [code] of table)
      for (const severity of ["FATAL", "PANIC"]) expect(meaning(fromPostgres(code, severity))).toBe("unknown connection_lost");
    for (const code of ["XX000", "58030"]) expect(meaning(fromPostgres(code, "SCHWERWIEGEND"))).toBe("unknown connection_lost");
    for (const code of ["22P02", "40001"]) expect(meaning(fromPostgres(code, "FEHLER"))).not.toContain("unknown");
  });

  test("G3 anything that Postgres did not say leaves the write unknown", () => {
    const errors = [
      new Error("Connection terminated unexpectedly"),
      Object.assign(new Error("x"), { code: "ECONNRESET" }),
      Object.assign(new Error("x"), { code: "40001" }),
    ];
    for (const error of errors) expect(meaning(error)).toBe("unknown connection_lost");
  });

  test("a session in doubt is not used again", () => {
    const ends = (error: Error): boolean => endsSession(failureOf(error));
    expect(["08006", "57P01", "25006", "26000", "42P05"].map((code) => ends(fromPostgres(code)))).toEqual([true, true, true, true, true]);
    expect(["40001", "55P03", "22P02", "53200"].map((code) => ends(fromPostgres(code)))).toEqual([false, false, false, false]);
  });
});

test("before sending, nothing was applied: Postgres refused, or could not be reached", () => {
  expect(connectFailure(fromPostgres("53300", "FATAL"))).toMatchObject({ kind: "unavailable", reason: "refused" });
  expect(connectFailure(Object.assign(new Error("x"), { code: "ECONNREFUSED" }))).toMatchObject({
    kind: "unavailable",
    reason: "unreachable",
  });
});

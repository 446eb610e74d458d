// What an answer of Postgres says about the transaction it ended, whichever driver threw it.
import { expect, test } from "vitest";
import { mayBeCommitted, serverErrorOf } from "../../src/server-error.js";

test("G3 an answer that ends the session leaves open whether it was committed, whatever its code", () => {
  for (const severity of ["FATAL", "PANIC"]) expect(mayBeCommitted({ code: "40001", severity })).toBe(true);
  for (const code of ["08006", "57P01"]) expect(mayBeCommitted({ code, severity: "ERROR" })).toBe(true);
  expect(mayBeCommitted({ code: "XX000", severity: "SCHWERWIEGEND" })).toBe(true);
  for (const code of ["40001", "23505", "XX000", "58030", "PLS01"]) expect(mayBeCommitted({ code, severity: "ERROR" })).toBe(false);
});

test("G3 an error of the socket is no answer of Postgres, though its code may look like one", () => {
  expect(serverErrorOf(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }))).toBeUndefined();
  const answered = { code: "PLS01", severity: "ERROR", message: "stale", detail: "35" };
  expect(serverErrorOf(new Error("Failed query", { cause: { driverError: answered } }))).toEqual(answered);
});

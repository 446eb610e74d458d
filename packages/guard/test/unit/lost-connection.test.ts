// Which errors say that a connection of postgres.js is lost, and which are about one statement.
import { expect, test } from "vitest";
import { endsConnection } from "../../src/lost-connection.js";

test("G3 an error of the socket, of the library's connection, or that ends the session is a loss", () => {
  for (const code of ["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "ECONNRESET", "EPIPE", "ETIMEDOUT"])
    expect(endsConnection(Object.assign(new Error("write"), { code }))).toBe(true);
  for (const severity of ["FATAL", "PANIC"]) expect(endsConnection({ code: "57P01", severity, message: "terminating" })).toBe(true);
});

test("G3 an error of one statement is no loss, whatever its code: its transaction has to be rolled back", () => {
  for (const code of ["UNDEFINED_VALUE", "MAX_PARAMETERS_EXCEEDED", "ENOENT", "57014", undefined])
    expect(endsConnection(Object.assign(new Error("refused"), { code }))).toBe(false);
  // What a foreign server's connection was is told with 08 as well.
  for (const code of ["08006", "40001"]) expect(endsConnection({ code, severity: "ERROR", message: "failed" })).toBe(false);
  for (const thrown of [undefined, null, "text"]) expect(endsConnection(thrown)).toBe(false);
});

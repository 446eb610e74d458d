// Connections may be shared behind a pooler, so a prepared statement's name must tell its text.
import { expect, test } from "vitest";
import { fencedWrite, type StatementForm } from "../../../src/write/statement.js";

function* forms(): Generator<StatementForm> {
  for (const rows of ["any", "known"] as const)
    for (const scope of ["each", "all", "one"] as const)
      for (const history of ["off", "on"] as const)
        for (const durability of ["local", "sync"] as const) yield { rows, scope, history, durability };
}

test("G3 statements with different texts have different names, which Postgres does not cut off", () => {
  const textOf = new Map<string, string>();
  for (const form of forms()) {
    const { name, text } = fencedWrite(form);
    expect(textOf.get(name) ?? text).toBe(text);
    textOf.set(name, text);
    expect(name.length).toBeLessThan(64);
  }
  expect(textOf.size).toBe(new Set(textOf.values()).size);
  expect(textOf.size).toBe(24);
});

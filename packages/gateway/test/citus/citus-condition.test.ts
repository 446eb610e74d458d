// The statements of Citus, UPDATE and INSERT of one row, decide as the one of plain Postgres does.
import { refusalOf } from "../../src/write/condition.js";
import { expect, test } from "../support/fixtures.js";
import { storedCases } from "../support/sql.js";

// A resource that the gateway has heard of is updated without an attempt to make its row.
test.for(["first", "known"] as const)(
  "G1 a write on Citus is accepted exactly where its explanation calls it admissible (resources: %s)",
  async (met, { connect, openStore }) => {
    const store = await openStore();
    const cases = await storedCases(await connect());
    const staleSeal = { op: "seal", token: 1 } as const;
    if (met === "known")
      await Promise.all(
        cases.map(({ state, request: { resource } }) => (state === undefined ? undefined : store.write({ ...staleSeal, resource }))),
      );
    const verdicts = await Promise.all(cases.map(({ request }) => store.write(request)));
    const expected = cases.map(({ request, state }) => refusalOf({ request, verified: true }, state).kind);
    expect(verdicts.map(({ kind }) => kind)).toEqual(expected.map((kind) => (kind === "admissible" ? "accepted" : kind)));
  },
);

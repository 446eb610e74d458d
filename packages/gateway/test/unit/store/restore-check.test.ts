// What a look at the database concludes when the database or the nodes do not say what they should.
// Needs no server; real restores: test/real/store-restore.test.ts.
import { expect, test } from "vitest";
import { RestoreCheck } from "../../../src/store/restore-check.js";

const row = { id: "a", beat: "33", is_moved: false, is_confirmed: true };
const remembering = (beat: number) => ({ mark: async () => beat });

/** Answers each look with the next of these, and then with the last. */
function database(...looks: readonly (Readonly<Record<string, unknown>> | undefined)[]) {
  let at = -1;
  return async () => {
    at = Math.min(at + 1, looks.length - 1);
    const found = looks[at];
    return found === undefined ? [] : [found];
  };
}

test.for([
  ["has gone", undefined],
  ["is another one", { ...row, id: "b", beat: "40" }],
  ["says no beat", { ...row, beat: null }],
] as const)("G7 a lineage that %s at the second look is a fault, and so are fewer beats afterwards", async ([, second]) => {
  const check = new RestoreCheck(remembering(34), "refuse");
  expect(await check.fault(database(row, second))).toMatch(/taken away|beat/);
  expect(await check.fault(database(row))).toMatch(/it was restored/);
  expect(check.hasFault).toBe(true);
  expect(await check.fault(database({ ...row, beat: "34" }))).toBeUndefined();
  expect(check).toMatchObject({ hasFault: false, least: 34 });
});

test("G7 a beat that is counted during the look is no fault, and is not forgotten", async () => {
  let remembered = 33;
  const check = new RestoreCheck({ mark: async () => remembered }, "refuse");
  await check.fault(database(row));
  remembered = 34;
  expect(await check.fault(database(row, { ...row, beat: "35" }))).toBeUndefined();
  expect(check.least).toBe(35);
});

// What a look at the database concludes when the database or the nodes do not say what they should.
// Needs no server; real restores: test/real/store-restore.test.ts.
import { expect, test, vi } from "vitest";
import type { ReadPool } from "../../../src/store/read-pool.js";
import { type Marks, markOf, RestoreCheck } from "../../../src/store/restore-check.js";

const row = { id: "a", beat: "33", fault: null, is_confirmed: true, recoveries: "0" };
type Row = Readonly<Record<string, unknown>> | undefined;

/** Looks at a database that answers each question with the next of these. */
function looking(mark: Marks["mark"]) {
  const looks: Row[] = [];
  const counted: number[] = [];
  const execute = async () => ({ rows: [looks.shift()].filter((found) => found !== undefined) });
  const pool = { read: (work: (db: object) => unknown) => work({ execute }) } as unknown as ReadPool;
  const count = async (atLeast: number) => void counted.push(atLeast);
  const check = new RestoreCheck({ marks: { mark }, unreachable: "refuse", pool, count });
  const look = (...rows: readonly Row[]) => {
    looks.splice(0, looks.length, ...rows);
    return check.pulse();
  };
  return { check, counted, look };
}

test.for([
  ["has gone", undefined],
  ["is another one", { ...row, id: "b", beat: "40" }],
  ["says no beat", { ...row, beat: null }],
] as const)("G7 a lineage that %s at the second look is a fault, and so are fewer beats afterwards", async ([, second]) => {
  const { check, look } = looking(async () => 34);
  expect(await look(row, second)).toMatch(/taken away|beat/);
  expect(await look(row, row)).toMatch(/it was restored/);
  expect(await check.refresh()).toMatch(/has no row/); // Each statement has it looked at again.
  expect(await look({ ...row, beat: "34" })).toBeUndefined();
  expect(check.refresh()).toBeUndefined();
  expect(check.least).toBe(34);
});

test("G7 another database in the place of the known one is a fault until somebody recovers it, and no beat is counted in it", async () => {
  const marks = new Map([[markOf("a"), 33]]);
  const { check, counted, look } = looking(async (name) => marks.get(name) ?? 0);
  await look(row);
  const other = { ...row, id: "b", beat: "40", recoveries: "2" };
  check.acknowledged();
  for (let seconds = 0; seconds < 3; seconds += 1) expect(await look(other, other)).toMatch(/another database.*recover/);
  expect(await look(row)).toBeUndefined(); // Put back.
  expect(counted).toEqual([33]);
  expect(await look(other, other)).toMatch(/another database/);
  expect(await look({ ...other, recoveries: "3" })).toBeUndefined();
  expect(check.least).toBe(40);
});

test("G7 a beat that is counted during the look is no fault, and is not forgotten", async () => {
  let remembered = 33;
  const { check, look } = looking(async () => remembered);
  await look(row);
  remembered = 34;
  expect(await look(row, { ...row, beat: "35" })).toBeUndefined();
  expect(check.least).toBe(35);
});

test("G7 beats are counted only while the nodes are heard, and never from less than they remember", async () => {
  const answers = [40, 41, undefined, undefined]; // None is left for the beat itself.
  const { check, counted, look } = looking(async () => {
    const heard = answers.shift();
    if (heard === undefined) throw new Error("no quorum");
    return heard;
  });
  check.acknowledged();
  await look({ ...row, beat: "40" });
  expect(counted).toEqual([40]);
  // Of a restored database it is kept that it lacks them.
  expect(await look(row, row)).toMatch(/it was restored/);
  expect(counted).toEqual([40, 41]);
  // The nodes are away; what they said is known.
  for (const found of [{ ...row, beat: "41" }, row]) await look(found, found);
  expect(counted).toEqual([40, 41]);
  expect(check.least).toBe(41);
});

test("G7 a gateway that stood still asks the nodes before it writes", async () => {
  const { check, look } = looking(async () => 33);
  await look(row);
  expect(check.refresh()).toBeUndefined();
  vi.useFakeTimers({ toFake: ["performance"], now: performance.now() + 3_600_000 });
  vi.advanceTimersByTime(3_600_000);
  expect(check.refresh()).toBeInstanceOf(Promise);
  vi.useRealTimers();
});

// The writes that a gateway remembers to have refused: bounded, and honest about what it has lost.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RefusalRing, RING_SIZE } from "../../../src/observe/refusals.js";

beforeEach(() => vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => vi.useRealTimers());

const refused = { resource: "a", code: "fencing_token_stale", presentedToken: 1, currentToken: 2, caller: "c", address: "", requestId: "" };
const flood = (ring: RefusalRing, count: number): void => {
  for (let n = 0; n < count; n += 1) {
    vi.advanceTimersByTime(1);
    ring.note(refused);
  }
};
const all = (ring: RefusalRing) => ring.newest(Number.POSITIVE_INFINITY, 0, () => true);

test("G6 of a flood the newest thousand are kept, and it is said since when none is missing", () => {
  const ring = new RefusalRing();
  flood(ring, RING_SIZE);
  expect(ring.since).toBe(1_000_000);
  flood(ring, 5);
  expect(all(ring).map(({ id }) => id)).toEqual(Array.from({ length: RING_SIZE }, (_, index) => RING_SIZE + 5 - index));
  expect(ring.since).toBe(all(ring).at(-1)?.at);
});

test("those that are wanted are told newest first, after an id and up to a number", () => {
  const ring = new RefusalRing();
  for (const resource of ["a", "b", "a", "a"]) ring.note({ ...refused, resource });
  const ids = (limit: number, after: number) => ring.newest(limit, after, ({ resource }) => resource === "a").map(({ id }) => id);
  expect([ids(10, 0), ids(2, 0), ids(10, 1), ids(10, 4)]).toEqual([[4, 3, 1], [4, 3], [4, 3], []]);
});

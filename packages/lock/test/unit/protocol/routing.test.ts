import fc from "fast-check";
import { expect, test } from "vitest";
import { homeIn, isOneKey, routingKeyOf } from "../../../src/protocol/routing.js";

const fleets = (...names: readonly string[]) => names.map((name) => ({ name }));
const names = Array.from({ length: 6_000 }, (_, i) => `orders/${i}`);
const homeOf = (name: string, ...of: readonly string[]) => homeIn(fleets(...of), name)?.name;

test("F1 the part in the first braces decides, or else the whole name", () => {
  expect(["a{b}c", "{b}", "x{b}{c}", "{}b", "b", "a}{b}", "{b"].map(routingKeyOf)).toEqual(["b", "b", "b", "{}b", "b", "b", "{b"]);
  expect(isOneKey(["{7}/from", "{7}/to"])).toBe(true);
  expect(isOneKey(["7/from", "7/to"])).toBe(false);
});

test("F1 these resources belong to these fleets, in this and every later version", () => {
  const homes = ["orders/1", "orders/2", "orders/3", "accounts/{7}/a", "accounts/{7}/b", "ünïcode/☃", "x"].map((name) =>
    homeOf(name, "east", "north", "west"),
  );
  expect(homes).toEqual(["west", "east", "north", "east", "east", "east", "west"]);
});

test("F1 a fleet that is added takes its share from each of the others, and nothing moves between those", () => {
  const before = names.map((name) => homeOf(name, "east", "north", "west"));
  const after = names.map((name) => homeOf(name, "east", "north", "south", "west"));
  const moved = names.flatMap((_, i) => (before[i] === after[i] ? [] : [{ from: before[i], to: after[i] }]));
  expect(new Set(moved.map(({ to }) => to))).toEqual(new Set(["south"]));
  for (const fleet of ["east", "north", "south", "west"]) {
    const share = after.filter((home) => home === fleet).length / names.length;
    expect(share, fleet).toBeGreaterThan(0.22);
    expect(share, fleet).toBeLessThan(0.28);
  }
});

test("F1 the order in which fleets are named does not matter", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1, maxLength: 6 }),
      fc.string({ minLength: 1 }),
      (some, name) => {
        expect(homeOf(name, ...some)).toBe(homeOf(name, ...[...some].reverse()));
      },
    ),
  );
});

import { describe, expect, test } from "vitest";
import { readArguments } from "../../simulation/arguments.js";

describe("the command line of the simulation", () => {
  test("asks for a million acquisitions by two workers unless it says otherwise", () => {
    expect(readArguments([])).toMatchObject({
      what: "run",
      acquisitions: 1_000_000,
      workers: 2,
      limitMs: Number.POSITIVE_INFINITY,
    });
    expect(readArguments(["--minutes", "0.5"])).toMatchObject({
      acquisitions: Number.POSITIVE_INFINITY,
      limitMs: 30_000,
    });
    expect(readArguments(["--acquisitions", "10", "--seed", "7", "--workers", "1", "--json", "x"])).toMatchObject({
      seed: 7,
      json: "x",
      workers: 1,
    });
  });

  test("names a world by its seed, and a smaller one by its path as well", () => {
    expect(readArguments(["--replay", "12"])).toMatchObject({ what: "replay", seed: 12, path: undefined });
    expect(readArguments(["--replay", "12:0:3:1"])).toMatchObject({
      what: "replay",
      seed: 12,
      path: "0:3:1",
    });
  });

  test.for([
    ["--seed", "x"],
    ["--seed", "-1"],
    ["--minutes", "0"],
    ["--acquisitions", "1.5"],
    ["--control", "nothing"],
    ["--replay", "a"],
    ["--what"],
    ["more"],
  ])("refuses %j", (args) => {
    expect(() => readArguments(args)).toThrow();
  });
});

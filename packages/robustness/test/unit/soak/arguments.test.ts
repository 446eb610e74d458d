// What the command line of the soak may say.
import { expect, test } from "vitest";
import { readArguments } from "../../../src/profiles/soak/arguments.js";

const read = (...args: string[]) => readArguments(args, () => 36);

test("without options half an hour of four clients is asked for, and the clock is the seed", () => {
  expect(read()).toMatchObject({ minutes: 30, perSecond: 100, clients: 4, seed: "10", leaks: [], svg: undefined, json: undefined });
});

test("what makes no sense is refused with a sentence", () => {
  expect(() => read("--minutes", "0")).toThrow("--minutes must be a positive number, not 0");
  expect(() => read("--rate", "fast")).toThrow("--rate must be a positive number, not fast");
  expect(() => read("--clients", "1")).toThrow("--clients must be from 2 to 64, not 1");
  expect(() => read("--leak", "memory,money")).toThrow("--leak takes memory, timers, listeners, files, not money");
  expect(() => read("--nonsense")).toThrow();
});

// What may be asked for on the command line, of either kind of run, and what is answered to what may not.
import { describe, expect, test } from "vitest";
import { readArguments as readLockArguments } from "../../../src/profiles/lock/arguments.js";
import { type Asked, readArguments } from "../../../src/profiles/system/arguments.js";

function read(...args: readonly string[]): Asked {
  return readArguments(args) as Asked;
}

describe("a run of the whole system", () => {
  test("is five minutes with the fence and a seed of its own, unless asked otherwise", () => {
    expect(read()).toMatchObject({ mode: "fenced", clients: 10, durationMs: 300_000, json: undefined, html: undefined });
    expect(read().seed).not.toBe("");
    expect(read("--minutes", "0.5", "--seed", "s", "--control", "--clients", "12")).toMatchObject({
      mode: "unfenced",
      clients: 12,
      durationMs: 30_000,
      seed: "s",
    });
  });

  test("is short of two minutes by as much as starting and looking take, where a short one is asked for", () => {
    expect(read("--short").durationMs).toBeLessThanOrEqual(100_000);
  });

  test.for<readonly [string[], RegExp]>([
    [["--minutes", "soon"], /^--minutes must be a positive number, not soon$/],
    [["--minutes", "-1"], /--minutes/],
    [["--short", "--minutes", "3"], /^--short and --minutes are two answers to one question: give one of them.$/],
    [["--clients", "1"], /^--clients is a whole number from 2 to 64, not 1$/],
    [["--clients", "2.5"], /^--clients is a whole number/],
    [["--loud"], /Unknown option '--loud'/],
    [["now"], /Unexpected argument 'now'/],
  ])("refuses %j", ([args, sentence]) => {
    expect(() => readArguments(args)).toThrow(sentence);
  });
});

describe("a run of the lock alone", () => {
  test("short ones are bounded to well below 45 seconds", () => {
    expect(readLockArguments(["--short"]).limitMs).toBeLessThanOrEqual(30_000);
  });

  test.for<readonly [string[], RegExp]>([
    [["--processes", "0"], /^--processes must be a positive number, not 0$/],
    [["--appendfsync", "never"], /^--appendfsync is one of always, everysec, no, not never$/],
  ])("refuses %j", ([args, sentence]) => {
    expect(() => readLockArguments(args)).toThrow(sentence);
  });
});

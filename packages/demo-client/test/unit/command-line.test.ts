// What the user may ask for. Every mistake is one sentence; real processes test the exit codes.
import { expect, test } from "vitest";
import { readCommandLine } from "../../src/command-line.js";

const names = ["gc-pause", "extend"];

const mistakes: readonly (readonly [readonly string[], string])[] = [
  [["gc-paus"], 'There is no scenario "gc-paus"; there are gc-pause, extend, and all.'],
  [["all", "gc-paus"], 'There is no scenario "gc-paus"; there are gc-pause, extend, and all.'],
  [["--fast"], "Unknown option '--fast'; there are --list, --help, --json, --html, --speed, --ttl."],
  [["--ttl"], "Option '--ttl <value>' argument missing."],
  [["--ttl", "soon"], '--ttl takes a whole number from 200 to 30000, not "soon".'],
  [["--ttl", "199"], '--ttl takes a whole number from 200 to 30000, not "199".'],
  [["--ttl", "300.5"], '--ttl takes a whole number from 200 to 30000, not "300.5".'],
  [["--ttl="], '--ttl takes a whole number from 200 to 30000, not "".'],
  [["--ttl=-5"], '--ttl takes a whole number from 200 to 30000, not "-5".'],
  [["--speed", "1e9"], '--speed takes a number from 0 to 1000, not "1e9".'],
];

for (const [args, sentence] of mistakes)
  test(`demo ${args.join(" ")} is answered with: ${sentence}`, () => {
    expect(() => readCommandLine(args, names)).toThrow(expect.objectContaining({ name: "UsageError", message: sentence }));
  });

test("without a name it is the first scenario, with all it is every one, and none runs twice", () => {
  const chosen = (...args: readonly string[]): readonly string[] => readCommandLine(args, names).scenarios;
  expect([chosen(), chosen("extend"), chosen("extend", "extend"), chosen("all", "extend")]).toEqual([
    ["gc-pause"],
    ["extend"],
    ["extend"],
    names,
  ]);
});

test("what is asked for is what is done", () => {
  expect(readCommandLine("extend --ttl 500 --speed 2.5 --json --html x.html".split(" "), names)).toEqual({
    mode: "play",
    scenarios: ["extend"],
    json: true,
    htmlFile: "x.html",
    speed: 2.5,
    ttlMs: 500,
  });
});

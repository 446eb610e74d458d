// What the user may ask for. Every mistake is one sentence; real processes test the exit codes.
import { expect, test } from "vitest";
import { readCommandLine } from "../../src/command-line.js";

const names = ["gc-pause", "extend"];

const mistakes: readonly (readonly [readonly string[], string])[] = [
  [["gc-paus"], 'There is no scenario "gc-paus"; there are gc-pause, extend, and all.'],
  [["all", "gc-paus"], 'There is no scenario "gc-paus"; there are gc-pause, extend, and all.'],
  [["--fast"], "Unknown option '--fast'. --help lists what there is."],
  [["--ttl"], "Option '--ttl <value>' argument missing. --help lists what there is."],
  [["--ttl", "soon"], '--ttl takes a whole number from 200 to 30000, not "soon".'],
  [["--ttl", "199"], '--ttl takes a whole number from 200 to 30000, not "199".'],
  [["--ttl", "300.5"], '--ttl takes a whole number from 200 to 30000, not "300.5".'],
  [["--ttl", "-5"], '--ttl takes a whole number from 200 to 30000, not "-5".'],
  [["--ttl="], '--ttl takes a whole number from 200 to 30000, not "".'],
  [["--speed", "-1"], '--speed takes a number from 0 to 1000, not "-1".'],
  [["--speed", "1e9"], '--speed takes a number from 0 to 1000, not "1e9".'],
  [["--redis", "nowhere"], '--redis takes redis://… addresses, and "nowhere" is none.'],
  [["--redis", "redis://a,"], '--redis takes redis://… addresses, and "" is none.'],
  [["--gateway", "http://a"], "--gateway needs --redis: the tokens must come from the nodes that this gateway asks."],
  [["--redis", "redis://a", "--gateway", "a:1"], '--gateway takes http://… addresses, and "a:1" is none.'],
  [["--api-key", "k"], "--api-key is for a gateway that runs already: name it with --gateway."],
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
  const args = "extend --ttl 500 --speed 2.5 --json --html x.html --redis redis://a:1,redis://b:2 --gateway http://c:3 --api-key k".split(
    " ",
  );
  expect(readCommandLine(args, names)).toEqual({
    mode: "play",
    scenarios: ["extend"],
    json: true,
    htmlFile: "x.html",
    speed: 2.5,
    ttlMs: 500,
    redisUrls: ["redis://a:1", "redis://b:2"],
    gateway: { url: "http://c:3", apiKey: "k" },
  });
});

// What may be asked of the benchmark, and the answers to what makes no sense.
import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { readCommandLine, usage } from "../../src/command-line.js";
import { countFor, effortFor, type Part } from "../../src/measure/part.js";

const run = async (): Promise<void> => {};
const parts: readonly Part[] = [
  { name: "headline", what: "the one in the first line", from: "quick", run },
  { name: "ordinary", what: "another", from: "usual", run },
  { name: "long", what: "one that takes minutes", from: "all", run },
];
const read = (...args: readonly string[]) => readCommandLine(args, parts);

describe("the command line of the benchmark", () => {
  test("asks for everything, for a scope, or for parts by name, and knows what is left out", () => {
    expect(read()).toMatchObject({ scope: "all", parts: ["headline", "ordinary", "long"], leftOut: [] });
    expect(read("quick")).toMatchObject({ scope: "quick", parts: ["headline"], leftOut: ["ordinary", "long"] });
    expect(read("usual", "--write")).toMatchObject({ parts: ["headline", "ordinary"], leftOut: ["long"], write: true });
    expect(read("long", "ordinary", "--rounds", "3", "--seconds", "0.5")).toMatchObject({
      scope: "usual",
      parts: ["long", "ordinary"],
      rounds: 3,
      seconds: 0.5,
    });
  });

  test.for<readonly [string[], RegExp]>([
    [["unheard-of"], /^no part is called unheard-of; there are quick, usual, all, headline/],
    [["quick", "ordinary"], /^quick is a set of parts: name it alone$/],
    [["--rounds", "1.5"], /^--rounds takes a whole number from 1 to 1000, not "1.5".$/],
    [["--seconds", "soon"], /^--seconds takes a number from 0.001 to 3600, not "soon".$/],
    [["--json", "/no/such/folder/results.json"], /^--json .*: there is no folder for it$/],
    [["--from", "/no/such/results.json", "--write"], /^--from .*: there is no such file$/],
    [["--from", tmpdir(), "headline"], /^--from shows an earlier run/],
    [["--beside", tmpdir()], /^--beside .*: there is no built checkout/],
    [["--loud"], /Unknown option '--loud'/],
  ])("refuses %j", ([args, sentence]) => {
    expect(() => read(...args)).toThrow(sentence);
  });

  test("names every part in its usage", () => {
    expect(read("--help")).toBeUndefined();
    for (const { name, what } of parts) expect(usage(parts)).toMatch(new RegExp(`^${name} .*${what}$`, "m"));
  });
});

describe("the effort of a run", () => {
  const usual = { rounds: 7, seconds: 0.2 };
  const nothing = { rounds: undefined, seconds: undefined };

  test("is less than usual where it must be quick, and more rounds where all is asked for", () => {
    expect(effortFor("quick", nothing)(usual)).toEqual({ rounds: 3, seconds: 0.06 });
    expect(effortFor("usual", nothing)(usual)).toEqual(usual);
    expect(effortFor("all", nothing)(usual)).toEqual({ rounds: 11, seconds: 0.2 });
  });

  test("is what the command line says, if it says something", () => {
    expect(effortFor("all", { rounds: 2, seconds: undefined })(usual)).toEqual({ rounds: 2, seconds: 0.2 });
    expect(countFor({ rounds: undefined, seconds: 1 })(10_000)).toBe(10_000);
    expect(countFor({ rounds: undefined, seconds: 0.02 })(10_000)).toBe(100);
  });
});

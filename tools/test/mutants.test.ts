// Every mutant still says what it means: its text stands where it says, and the tests that are to
// notice it exist. Whether they notice is `npm run mutants`.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readArguments, SHORT_COUNT, selected } from "../mutants/arguments.mjs";
import { catalogue } from "../mutants/catalogue.mjs";
import { together } from "../mutants/compile.mjs";
import { mutantsIn } from "../mutants/list.mjs";
import { mutated, testsOf } from "../mutants/mutant.mjs";
import { countLine, failures, table } from "../mutants/report.mjs";
import { findingOf } from "../mutants/test-run.mjs";
import { pathOf } from "./programs.js";

const inRoot = (path: string): string => pathOf(`../${path}`);
const promises = [...readFileSync(inRoot("spec/invariants.md"), "utf8").matchAll(/^## ([A-Z]\d) /gm)].map(([, id]) => id);

describe("each mutant", () => {
  test.each(catalogue.map((mutant) => [mutant.name, mutant] as const))(
    "%s changes one place, breaks one promise, and has tests to notice it",
    (_, mutant) => {
      const text = readFileSync(inRoot(mutant.file), "utf8");
      expect(mutated(mutant, text)).not.toBe(text);
      expect(promises).toContain(mutant.promise);
      expect(mutant.name).toMatch(/^[a-z]+(-[a-z]+)*$/);
      expect(mutant.breaks).toMatch(/^[A-Z].*\.$/);
      expect(mutant.tests.length).toBeGreaterThan(0);
      expect(testsOf(mutant).filter((path) => !existsSync(inRoot(path)))).toEqual([]);
    },
  );
});

describe("the mutants", () => {
  test("are many, have different names, and leave out no part of the lock, the gateway or the client", () => {
    expect(new Set(catalogue.map(({ name }) => name)).size).toBe(catalogue.length);
    expect(catalogue.length).toBeGreaterThanOrEqual(50);
    for (const part of [
      "lock/src/quorum/",
      "lock/src/redis/",
      "lock/src/redis/lua/",
      "gateway/src/fence/",
      "gateway/src/guard/",
      "gateway/src/http/",
      "gateway/src/store/",
      "client/src/",
    ])
      expect(
        catalogue.some(({ file }) => file.startsWith(`packages/${part}`)),
        part,
      ).toBe(true);
  });

  test("of a list are read as they stand there, and what is none is refused", () => {
    const entry = "a-b (T1): It breaks.\nsrc/a.ts, noticed by unit/a.test.ts and real/b.test.ts\n- one\n-\n-   two\n";
    const read = { name: "a-b", promise: "T1", file: "src/a.ts", find: "one\n\n  two", replace: "", breaks: "It breaks." };
    expect(mutantsIn(`# About.\n\n${entry}`)).toEqual([{ ...read, tests: ["unit/a.test.ts", "real/b.test.ts"] }]);
    expect(mutantsIn(`# About.\n\n${entry}+ three\n`)).toMatchObject([{ find: read.find, replace: "three" }]);
    expect(() => mutantsIn("# About.\n\na-b (T1): It breaks.\n- one\n")).toThrow("not a mutant");
  });

  test("whose text has gone or stands twice no longer apply", () => {
    const mutant = { name: "m", promise: "T1", file: "f", find: "a", replace: "b", breaks: "", tests: [] };
    expect(mutated(mutant, "xay")).toBe("xby");
    expect(() => mutated(mutant, "xy")).toThrow("mutant m no longer applies: its text stands 0 times in f, not once");
    expect(() => mutated(mutant, "aa")).toThrow("stands 2 times");
  });

  test("apply however the formatter breaks their lines, and only where words are whole", () => {
    const mutant = { name: "m", promise: "T1", file: "f", find: "if (a === b) call(x, y);", replace: "gone();", breaks: "", tests: [] };
    expect(mutated(mutant, "if (\n  a === b\n)\n  call(\n    x,\n    y,\n  );\n")).toBe("gone();\n");
    expect(mutated({ ...mutant, find: "return this.one;" }, "return (0);\nreturn this\n  .one;")).toBe("return (0);\ngone();");
    expect(() => mutated({ ...mutant, find: "return one" }, "returnone")).toThrow("stands 0 times");
    expect(() => mutated({ ...mutant, find: 'say("a b")' }, 'say("a  b")')).toThrow("stands 0 times");
    expect(() => mutated({ ...mutant, find: "f(a)" }, "f(a); f(\n  a,\n);")).toThrow("stands 2 times");
  });

  test("of a short run are selected by the seed, different ones by different seeds", () => {
    const short = (seed: string) => selected(catalogue, readArguments(["--short", "--seed", seed], 0)).map(({ name }) => name);
    expect(short("7")).toEqual(short("7"));
    expect(short("7")).not.toEqual(short("8"));
    expect(new Set(short("7")).size).toBe(SHORT_COUNT);
    const tried = new Set(Array.from({ length: 400 }, (_, seed) => short(String(seed))).flat());
    expect(tried.size).toBe(catalogue.length);
  });

  test("are compiled so many of a file at a time, where none changes the place of another", () => {
    const about = { promise: "T1", replace: "x", breaks: "", tests: [] };
    const [one, same, other, third] = ["a", "a b", "b", "c"].map((find) => ({ ...about, name: find, file: "f", find }));
    const elsewhere = { ...about, name: "e", file: "g", find: "a" };
    const all = [one, same, other, third, elsewhere].flatMap((mutant) => mutant ?? []);
    expect(together(all, 2, () => "a b c")).toEqual({ now: [one, other, elsewhere], later: [same, third] });
  });

  test("that are asked for by name are these, and an unknown name is refused", () => {
    const [first] = catalogue;
    expect(selected(catalogue, readArguments([first?.name ?? ""], 0))).toEqual([first]);
    expect(() => selected(catalogue, readArguments(["nobody"], 0))).toThrow("there is no mutant nobody");
    expect(() => readArguments(["--seed", "7"], 0)).toThrow("--short");
    expect(() => readArguments(["--fast"], 0)).toThrow("What there is");
    expect(readArguments(["--compile"], 0)).toMatchObject({ compile: true, names: [] });
    expect(() => readArguments(["--compile", "--short"], 0)).toThrow("--compile runs no test");
  });
});

describe("a run of the tests", () => {
  const ended = { code: 1, output: "", folder: "/copy" };
  const file = (status: string, ...statuses: string[]) => ({
    name: "/copy/packages/lock/test/a.test.ts",
    status,
    message: "it cannot be loaded",
    assertionResults: statuses.map((one) => ({ status: one, fullName: `T1 ${one}`, failureMessages: ["why"] })),
  });

  test("is red when a test failed, and says which", () => {
    expect(findingOf([file("failed", "passed", "failed")], ended)).toEqual({
      kind: "red",
      title: "T1 failed",
      file: "packages/lock/test/a.test.ts",
      message: "why",
    });
  });

  test("says so when a test was red because its time was up", () => {
    const slow = file("failed", "failed");
    const assertionResults = slow.assertionResults.map((one) => ({ ...one, failureMessages: ["Error: STACK_TRACE_ERROR\n    at task"] }));
    expect(findingOf([{ ...slow, assertionResults }], ended)).toMatchObject({
      message: "it did not end within its time limit\n    at task",
    });
  });

  test("is green when tests ran and nothing was wrong", () => {
    expect(findingOf([file("passed", "passed")], { ...ended, code: 0 })).toEqual({ kind: "green" });
  });

  test.each([
    ["a file could not be loaded", [file("failed")], 1],
    ["something failed outside of the tests", [file("passed", "passed")], 1],
    ["it was ended from outside", [], 143],
    ["no test ran", [], 0],
  ])("is neither when %s", (_, files, code) => {
    expect(findingOf(files, { ...ended, code }).kind).toBe("unclear");
  });
});

test("survivors are named with what they break, and only killed mutants count", () => {
  const mutant = { promise: "T1", file: "f.ts", find: "", replace: "", breaks: "It breaks.", tests: [], seconds: 1 };
  const outcomes = [
    { ...mutant, name: "good", result: { verdict: "killed", title: "T1 t", file: "packages/lock/test/a.test.ts", expected: true } },
    { ...mutant, name: "bad", result: { verdict: "survived" } },
    { ...mutant, name: "odd", result: { verdict: "unclear", why: "it does not compile" } },
  ] as const;
  expect(table(outcomes)).toEqual(["good  T1  1.0 s  lock/test/a.test.ts: T1 t", "bad   T1  1.0 s  SURVIVED", "odd   T1  1.0 s  UNCLEAR"]);
  expect(failures(outcomes)).toEqual([
    "bad survived (f.ts): It breaks. No test notices.",
    "odd could not be judged (f.ts): it does not compile",
  ]);
  expect(countLine(outcomes)).toBe("1 of 3 mutants killed");
});

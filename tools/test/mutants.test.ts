// Every mutant still says what it means: its text stands where it says, and the tests that are to
// notice it exist. Whether they notice is `npm run mutants`.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { catalogue, mutantsIn, mutated, selected, testsOf, together } from "../mutants/mutant.mjs";
import { findingOf } from "../mutants/tree-copy.mjs";
import { inRoot } from "../run.mjs";

const promises = [...readFileSync(inRoot("spec/invariants.md"), "utf8").matchAll(/^## ([A-Z]\d) /gm)].map(([, id]) => id);

test("each mutant changes one place, breaks one promise, and has tests to notice it", () => {
  const wrong = catalogue.flatMap((mutant) => {
    try {
      const text = readFileSync(inRoot(mutant.file), "utf8");
      expect(mutated(mutant, text)).not.toBe(text);
      expect(promises).toContain(mutant.promise);
      expect(mutant.name).toMatch(/^[a-z]+(-[a-z]+)*$/);
      expect(mutant.breaks).toMatch(/^[A-Z].*\.$/);
      expect(testsOf(mutant).filter((path) => !existsSync(inRoot(path)))).toEqual([]);
      return [];
    } catch (error) {
      return [`${mutant.name}: ${(error as Error).message}`];
    }
  });
  expect(wrong).toEqual([]);
});

describe("the mutants", () => {
  test("are many, have different names, and leave out no part of the lock, the gateway or the client", () => {
    expect(new Set(catalogue.map(({ name }) => name)).size).toBe(catalogue.length);
    expect(catalogue.length).toBeGreaterThanOrEqual(50);
    for (const part of [
      "lock/src/quorum.ts",
      "lock/src/redis/",
      "lock/src/redis/lua/",
      "gateway/src/fence/",
      "gateway/src/write/",
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
    const short = (seed: number) => selected({ names: [], seed, count: 14 }).map(({ name }) => name);
    expect(short(7)).toEqual(short(7));
    expect(short(7)).not.toEqual(short(8));
    expect(new Set(short(7)).size).toBe(14);
    const tried = new Set(Array.from({ length: 400 }, (_, seed) => short(seed)).flat());
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
    expect(selected({ names: [first?.name ?? ""] })).toEqual([first]);
    expect(() => selected({ names: ["nobody"] })).toThrow("there is no mutant nobody");
  });
});

describe("a run of the tests", () => {
  const ended = { ok: false, output: "", folder: "/copy" };
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
    expect(findingOf([file("passed", "passed")], { ...ended, ok: true })).toEqual({ kind: "green" });
  });

  test.each([
    ["a file could not be loaded", [file("failed")], false],
    ["something failed outside of the tests", [file("passed", "passed")], false],
    ["it was ended from outside", [], false],
    ["no test ran", [], true],
  ])("is neither when %s", (_, files, ok) => {
    expect(findingOf(files, { ...ended, ok }).kind).toBe("unclear");
  });
});

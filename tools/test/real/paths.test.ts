// ARCHITECTURE.md lists the files that each operation of the product runs; here the operations run,
// on real servers, and are compared with it. `node tools/paths/main.mjs` prints the lists in the
// order in which the files run.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pathOf } from "../programs.js";

const architecture = readFileSync(pathOf("../ARCHITECTURE.md"), "utf8");

/** The files in backticks below the heading, with the package whose source its first line names. */
function listed(heading: string): readonly string[] {
  const [, section = ""] = architecture.split(new RegExp(`^### ${heading}$`, "m"));
  const [text = ""] = section.split(/^#/m);
  const [, name = ""] = /`packages\/(\w+)\/src\/`/.exec(text) ?? [];
  return [...text.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path]) => `${name}/${path}`);
}

interface Files {
  readonly always: readonly string[];
  readonly sometimes: readonly string[];
}

/** Sentences about each file that always runs and is not listed, or is listed and never runs. */
function differences(heading: string, { always, sometimes }: Files): readonly string[] {
  const list = listed(heading);
  const ran = [...always, ...sometimes];
  return [
    ...always.filter((file) => !list.includes(file)).map((file) => `${file} runs and is missing in ARCHITECTURE.md under "${heading}"`),
    ...list.filter((file) => !ran.includes(file)).map((file) => `${file} stands in ARCHITECTURE.md under "${heading}" and does not run`),
  ];
}

test("the algorithm can be read in one sitting", () => {
  const [, section = ""] = architecture.split("## The algorithm in one sitting");
  const [text = ""] = section.split("\n#");
  const files = [...text.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path]) => readFileSync(pathOf(`../packages/lock/src/${path}`), "utf8"));
  expect(files).toHaveLength(4);
  expect(files.join("").split("\n").length).toBeLessThanOrEqual(410);
});

describe("the files that run", () => {
  let paths: Readonly<Record<string, Files>>;
  const tracing = new AbortController();
  beforeAll(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [pathOf("paths/main.mjs")], { signal: tracing.signal });
    paths = JSON.parse(stdout);
  }, 300_000); // Seven seconds, and on a busy machine many times that.
  // It is not left running when its time is up.
  afterAll(() => tracing.abort());
  const ranBy = (operation: string, name: string): Files => {
    const { always = [], sometimes = [] } = paths[operation] ?? {};
    const ofPackage = (file: string): boolean => file.startsWith(`${name}/`);
    return { always: always.filter(ofPackage), sometimes: sometimes.filter(ofPackage) };
  };

  test.each([
    ["An uncontended acquire", "acquire", "lock", 24],
    ["A release", "release", "lock", 18],
    ["A hand-over to a waiting process", "hand-over", "lock", 28],
    ["A node's return", "node's return", "lock", 22],
    ["A PUT", "PUT", "gateway", 28],
    ["A stale PUT", "stale PUT", "gateway", 28],
  ])("in %s are those that ARCHITECTURE.md lists, and not too many to follow", (heading, operation, name, atMost) => {
    const ran = ranBy(operation, name);
    expect(differences(heading, ran)).toEqual([]);
    expect(ran.always.length).toBeGreaterThan(5);
    expect(listed(heading).length).toBeLessThanOrEqual(atMost);
  });
});

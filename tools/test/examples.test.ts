// What can be said of the examples without a server; tools/packages/examples.mjs installs and runs
// them.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const root = new URL("../../examples/", import.meta.url);
const examples = readdirSync(root, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");

const sourcesOf = (example: string): readonly string[] =>
  readdirSync(new URL(`${example}/`, root)).filter((file) => /\.(js|py|go|sql)$/.test(file));

/** The packages that its JavaScript imports. */
function importedBy(example: string): readonly string[] {
  const texts = sourcesOf(example).map((file) => (file.endsWith(".js") ? read(`${example}/${file}`) : ""));
  const names = texts.flatMap((text) => [...text.matchAll(/^import .* from "([^"]+)";$/gm)].map(([, name = ""]) => name));
  const packages = names.filter((name) => !/^(node:|\.)/.test(name)).map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
  return [...new Set(packages)].sort();
}

test("each example has a check, and each check an example", () => {
  const text = readFileSync(new URL("../packages/users/examples.mjs", import.meta.url), "utf8");
  const [, table = ""] = /^const checks = \{\n(.*?)^\};$/ms.exec(text) ?? [];
  expect([...table.matchAll(/^ {2}"?([\w-]+)"?[:,]/gm)].map(([, name]) => name).sort()).toEqual(examples.sort());
});

describe.each(examples)("the example %s", (example) => {
  const manifest = JSON.parse(read(`${example}/package.json`)) as Record<string, Readonly<Record<string, string>> | undefined>;

  test("depends on exactly the packages that it imports", () => {
    // What Prisma generates loads its client.
    const loaded = example === "own-tables" ? ["@prisma/client"] : [];
    expect(Object.keys(manifest.dependencies ?? {}).sort()).toEqual([...importedBy(example), ...loaded].sort());
  });

  test("has a README of at most 30 lines, which names a program of it", () => {
    const readme = read(`${example}/README.md`);
    expect(readme.split("\n").length - 1).toBeLessThanOrEqual(30);
    expect(sourcesOf(example).some((file) => readme.includes(file))).toBe(true);
  });
});

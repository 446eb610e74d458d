// What can be said of the examples without a server; tools/packages/main.mjs installs and runs them.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const root = new URL("../../examples/", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => !file.includes("node_modules"));
const programs = files.filter((file) => /\.(js|py|go|sql)$/.test(file));
const checks = readFileSync(new URL("../packages/users/examples.mjs", import.meta.url), "utf8");

test("each program is named by the README, and run by a check", () => {
  const readme = read("README.md");
  expect(programs.filter((file) => !readme.includes(file))).toEqual([]);
  // The programs of the cells are one.
  expect(programs.filter((file) => file !== "cells/move.js" && !checks.includes(file))).toEqual([]);
});

test("the examples depend on exactly the packages that they import", () => {
  const texts = programs.filter((file) => file.endsWith(".js")).map(read);
  const names = texts.flatMap((text) => [...text.matchAll(/^import .* from "([^"]+)";$/gm)].map(([, name = ""]) => name));
  const packages = names.filter((name) => !/^(node:|\.)/.test(name));
  const { dependencies } = JSON.parse(read("package.json")) as { dependencies: object };
  expect(Object.keys(dependencies).sort()).toEqual([...new Set(packages)].sort());
});

// Nothing is read from beside the code at run time: users bundle the gateway into one file.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = new URL("../../../", import.meta.url);

test("the version and the SQL are what is embedded", () => {
  for (const script of ["scripts/embed-version.mjs", "../guard/scripts/embed-sql.mjs"])
    execFileSync(process.execPath, [fileURLToPath(new URL(script, root)), "--check"], { stdio: "pipe" });
});

test("no source asks where it lies", () => {
  const source = new URL("src/", root);
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((name) => /import\.meta|__dirname/.test(readFileSync(new URL(name, source), "utf8")))).toEqual([]);
});

// docs/divergence.md names a test for each failure that other libraries have shown.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const folder = new URL("../", import.meta.url);
const tests = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".test.ts"));
// A title may be broken over two lines of code only at its ends.
const titles = tests.flatMap((file) =>
  [...readFileSync(new URL(file, folder), "utf8").matchAll(/test(?:\.\w+\(.*\))?\(\s*"((?:[^"\\]|\\.)*)"/g)].map(
    ([, title]) => title ?? "",
  ),
);
const document = readFileSync(new URL("../../../../docs/divergence.md", import.meta.url), "utf8");
const section = document.slice(document.indexOf("## Failures that other lock libraries have shown"));
const rows = [...section.matchAll(/^\| (.+) \| .+ \| (.+) \|$/gm)].slice(2).map(([, failure = "", title = ""]) => ({ failure, title }));

test("each of the thirteen failures has one test that is called so", () => {
  expect(rows).toHaveLength(13);
  for (const { failure, title } of rows)
    expect(
      titles.filter((each) => each.includes(title)),
      failure,
    ).toHaveLength(1);
});

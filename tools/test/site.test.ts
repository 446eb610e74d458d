// What of the site can be said without building it; `npm run site` builds it and checks its links.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deadLinks } from "../site/dead-links.mjs";
import { beginningWith, stagePages } from "../site/stage.mjs";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "palisade-site-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

describe("the links of a built site", () => {
  test("are found where they lead to no page, no place on it, or no picture", () => {
    put("index.html", '<a class="x" href="/docs/a">A</a><a href="/docs/b">B</a><a href="#there">T</a><h2 id="there">');
    put(
      "docs/a.html",
      '<a href="/">home</a><a href="../docs/a.html#nowhere">N</a><a href="https://example.com/x">out</a><img alt="" src="/none.png">',
    );
    expect(deadLinks(folder)).toEqual(["index.html: /docs/b", "docs/a.html: ../docs/a.html#nowhere", "docs/a.html: /none.png"]);
  });
});

interface Item {
  readonly text: string;
  readonly link?: string;
  readonly items?: readonly Item[];
}

test("a page of TypeDoc begins with what one calls first", () => {
  const entry = (name: string): string => `<a id="${name}"></a>\n\n### ${name}()\n\n***\n\n`;
  const page = `# P\n\n## Interfaces\n\n${entry("a")}## Functions\n\n${entry("b")}${entry("create")}`;
  const headings = beginningWith("create", page).match(/^##+ \w+/gm);
  expect(headings).toEqual(["## Functions", "### create", "### b", "## Interfaces", "### a"]);
  expect(() => beginningWith("gone", page)).toThrow("there is no gone");
});

describe("the pages of the site", () => {
  const linksOf = (items: readonly Item[]): readonly string[] =>
    items.flatMap(({ link, items: inner = [] }) => [...(link === undefined ? [] : [link]), ...linksOf(inner)]);
  const fileOf = (link: string): string => join(folder, link.endsWith("/") ? `${link}README.md` : `${link}.md`);

  test("are those of the sidebar, and every document is one", () => {
    const links = linksOf(stagePages(folder));
    for (const link of links.filter((one) => !one.startsWith("/api/"))) expect([link, existsSync(fileOf(link))]).toEqual([link, true]);
    const documents = readdirSync(new URL("../../docs", import.meta.url)).filter((name) => name.endsWith(".md"));
    expect(links).toEqual(expect.arrayContaining(documents.map((name) => `/docs/${name.replace(".md", "")}`)));
  });

  test("are found by the search where users read them, and not where it is told how it was made", () => {
    stagePages(folder);
    const isLeftOut = (page: string): boolean => /^---\n(.+\n)*search: false\n---/.test(readFileSync(join(folder, page), "utf8"));
    const [decision = ""] = readdirSync(join(folder, "docs/decisions"));
    for (const page of [`docs/decisions/${decision}`, "docs/verification.md", "docs/glossary.md", "spec/invariants.md", "ARCHITECTURE.md"])
      expect([page, isLeftOut(page)]).toEqual([page, true]);
    for (const page of ["overview.md", "docs/settings.md", "docs/operating.md"]) expect([page, isLeftOut(page)]).toEqual([page, false]);
  });

  test.each(["overview.md", "docs/page.md"])("have the pictures that they show: %s", (page) => {
    stagePages(folder);
    const shown = [...readFileSync(join(folder, page), "utf8").matchAll(/(?:src(?:set)?="|!\[[^\]]*\]\()([^":)]+)/g)];
    const paths = shown.map(([, path = ""]) => join(folder, dirname(page), path));
    expect(paths.length).toBeGreaterThan(1);
    expect(paths.filter((path) => !existsSync(path))).toEqual([]);
  });

  test("show blocks that follow each other, each with a label, as tabs", () => {
    stagePages(folder);
    const examples = readFileSync(join(folder, "examples/README.md"), "utf8");
    expect(examples).toMatch(/^::: code-group\n\n```ts \[TypeScript\]\n[\s\S]*^```go \[Go\]\n[^`]*```\n\n:::$/m);
    expect(examples.match(/^:::/gm)).toHaveLength(2);
  });

  test("link to pages of the site only; what is no page is named", () => {
    stagePages(folder);
    const overview = readFileSync(join(folder, "overview.md"), "utf8");
    expect(overview).toContain("(/spec/invariants)");
    expect(overview).not.toContain("(LICENSE)");
    expect(overview).toContain("`MIT`");
  });
});

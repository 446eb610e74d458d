// The site of the documentation. tools/site/stage.mjs copies the pages to .build/pages and writes
// the sidebar beside them.
import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";
import { search } from "./search.mjs";

const sidebar = JSON.parse(readFileSync(new URL("../.build/sidebar.json", import.meta.url), "utf8"));

const base = process.env.SITE_BASE ?? "/";

export default defineConfig({
  title: "Palisade",
  description: "A distributed lock whose leases carry a fencing token, and the Postgres gateway that checks it",
  base,
  head: [["link", { rel: "icon", href: `${base}icon.svg`, type: "image/svg+xml" }]],
  srcDir: ".build/pages",
  outDir: ".build/dist",
  cacheDir: ".build/cache",
  rewrites: (path) => path.replace(/README\.md$/, "index.md"),
  lastUpdated: false,
  markdown: { config: fitted, anchor: { slugify } },
  themeConfig: {
    logo: "/icon.svg",
    sidebar,
    nav: [
      { text: "Start", link: "/overview" },
      { text: "Settings", link: "/docs/settings" },
      { text: "Errors", link: "/docs/errors" },
      { text: "API", link: "/api/lock/" },
    ],
    outline: [2, 3],
    search,
  },
});

/** Of drawings, and of columns that a program has printed, the style sheet is told how wide they are. */
function fitted(markdown) {
  const { fence } = markdown.renderer.rules;
  markdown.renderer.rules.fence = (...args) => {
    const [tokens, index] = args;
    const { info, content } = tokens[index];
    const isAligned = info === "" && (/[─│]/.test(content) || (content.match(/\S {3,}\S/g) ?? []).length > 1);
    const columns = Math.max(...content.split("\n").map((line) => line.length));
    return isAligned ? fence(...args).replace("<div ", `<div style="--columns: ${columns}" `) : fence(...args);
  };
}

/** As GitHub does, so that one link leads to a place of a page on both. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

// The site of the documentation. tools/site/stage.mjs copies the pages to .build/pages and writes
// the sidebar beside them.
import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";

const sidebar = JSON.parse(readFileSync(new URL("../.build/sidebar.json", import.meta.url), "utf8"));

export default defineConfig({
  title: "Palisade",
  description: "A distributed lock whose leases carry a fencing token, and the Postgres gateway that checks it",
  base: process.env.SITE_BASE ?? "/",
  srcDir: ".build/pages",
  outDir: ".build/dist",
  cacheDir: ".build/cache",
  rewrites: (path) => path.replace(/README\.md$/, "index.md"),
  lastUpdated: false,
  themeConfig: {
    sidebar,
    nav: [
      { text: "Start", link: "/overview" },
      { text: "Settings", link: "/docs/settings" },
      { text: "Errors", link: "/docs/errors" },
      { text: "API", link: "/api/lock/" },
    ],
    outline: [2, 3],
    search: { provider: "local" },
  },
});

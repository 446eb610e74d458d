// Copies the pages of the site to where VitePress builds it. A link to a page of the site stays;
// one to a file that is no page becomes its name in code.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { inRoot } from "../run.mjs";

/** @typedef {{ text: string, link?: string, collapsed?: boolean, items?: readonly Item[] }} Item */

/**
 * The sidebar: titles of groups, and the pages of each by their paths in the repository. "Project" and the decisions
 * below it are how it was made and judged: no user has to read them, and the search leaves them out.
 */
const groups = {
  Start: ["README.md", "docs/need.md", "examples/README.md", "docs/own-tables.md", "docs/drivers.md", "docs/migrating.md"],
  Packages: [
    "docs/packages.md",
    ...["lock", "client", "guard", "gateway", "page", "dev", "cli"].map((name) => `packages/${name}/README.md`),
  ],
  Reference: ["docs/settings.md", "docs/errors.md", "spec/wire.md", "docs/not-here.md"],
  Operating: [
    "docs/operating.md",
    "docs/growing.md",
    "docs/citus.md",
    "docs/page.md",
    "docs/failure-modes.md",
    "deploy/README.md",
    "deploy/ha/README.md",
    "SECURITY.md",
  ],
  Project: [
    "docs/verification.md",
    "docs/performance.md",
    "spec/invariants.md",
    "spec/assumptions.md",
    "spec/README.md",
    "spec/models.md",
    "docs/divergence.md",
    "docs/glossary.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/containers.md",
    "CHANGELOG.md",
  ],
};
/** What users import: its declarations in `packages`, and what its page begins with. */
export const imported = {
  lock: ["lock/dist/index.d.ts", "createLocker"],
  "lock/redlock": ["lock/dist/redlock.d.ts", "Redlock"],
  "lock/testing": ["lock/dist/testing.d.ts", "createFakeLocker"],
  client: ["client/dist/index.d.ts", "createGatewayClient"],
  "client/testing": ["client/dist/testing.d.ts", "createFakeClient"],
  guard: ["guard/dist/index.d.ts", "withFencedTransaction"],
  "guard/schema": ["guard/dist/schema.d.ts", "migrate"],
  gateway: ["gateway/dist/index.d.ts", "createGateway"],
  "gateway/store": ["gateway/dist/fenced-store.d.ts", "openStore"],
};
/** Little besides one long table. A page with a drawing of more than 90 columns is as wide. */
const wide = new Set(["docs/settings.md", "docs/errors.md", "docs/performance.md", "spec/wire.md"]);
/** The README has the picture of the front page, so it is not the front page itself. */
const renamed = new Map([["README.md", "overview.md"]]);
/** Where the sidebar says something else than the heading of the page. */
const titles = new Map([["README.md", "Quickstart"]]);
const LINK = /(!?)\[([^\]]*)\]\(([^)\s]+)\)/g;
/** Blocks that follow each other and have a label: tabs. */
const TABS = /(?:^```\w+ \[[^\]]+\]\n[\s\S]*?^```\n\n){2,}/gm;
const PICTURE = /(src(?:set)?=")([^":]+)"/g;

/**
 * @param {string} folder where the pages go
 * @returns {readonly Item[]} the sidebar
 */
export function stagePages(folder) {
  const pages = [...new Set([...Object.values(groups).flat(), ...decisions()])];
  for (const page of pages) {
    const text = linked(page, readFileSync(inRoot(page), "utf8"), new Set(pages));
    write(join(folder, renamed.get(page) ?? page), `${head(page, text)}${text}`);
  }
  for (const picture of readdirSync(inRoot("docs")).filter((name) => /\.png$/.test(name)))
    copyFileSync(inRoot("docs", picture), join(folder, "docs", picture));
  write(join(folder, "index.md"), linked("site/index.md", readFileSync(inRoot("site", "index.md"), "utf8"), new Set(pages)));
  write(join(folder, "public", "icon.svg"), readFileSync(inRoot("packages", "page", "browser", "icon.svg"), "utf8"));
  return sidebar(pages);
}

/** A page of TypeDoc whose first kind, and first entry of it, is that of this name. @param {string} name @param {string} page */
export function beginningWith(name, page) {
  const [head = "", ...kinds] = page.split(/^(?=## )/m);
  const entriesOf = (/** @type {string} */ kind) => kind.split(/^(?=<a id="[^"]+"><\/a>\n\n### )/m);
  const isFirst = (/** @type {string} */ entry) => new RegExp(`^### ${name}\\b`, "m").test(entry);
  const [chosen = -1] = kinds.flatMap((kind, index) => (isFirst(kind) ? [index] : []));
  if (chosen === -1) throw new Error(`there is no ${name}`);
  const [title = "", ...entries] = entriesOf(`${kinds[chosen]?.trimEnd().replace(/\n\*\*\*$/, "")}\n\n***\n\n`);
  const sorted = [...entries.filter(isFirst), ...entries.filter((entry) => !isFirst(entry))];
  return [head, title, ...sorted, ...kinds.filter((_, index) => index !== chosen)].join("");
}

/** What VitePress is told of a page. @param {string} page @param {string} text */
function head(page, text) {
  const isDrawn = text.split("\n").some((line) => line.length > 90 && /[─│]/.test(line));
  const pageClass = wide.has(page) ? "wide" : isDrawn ? "drawn" : undefined;
  const lines = [
    ...(pageClass === undefined ? [] : [`pageClass: ${pageClass}`, "aside: false"]),
    ...(groups.Project.includes(page) || page.startsWith("docs/decisions/") ? ["search: false"] : []),
  ];
  return lines.length === 0 ? "" : `---\n${lines.join("\n")}\n---\n\n`;
}

/** @param {readonly string[]} pages @returns {readonly Item[]} */
function sidebar(pages) {
  const item = (/** @type {string} */ page) => ({ text: titleOf(page), link: addressOf(page) });
  const inFolder = (/** @type {RegExp} */ pattern) => pages.filter((page) => pattern.test(page)).map(item);
  const { Project: project, ...ofUsers } = groups;
  const listed = Object.entries(ofUsers).map(([text, list]) => ({ text, items: list.map(item) }));
  const api = Object.keys(imported).map((name) => ({ text: `@palisade/${name}`, link: `/api/${name}/` }));
  return [
    ...listed.slice(0, 2),
    { text: "API", items: api },
    ...listed.slice(2),
    {
      text: "Project",
      collapsed: true,
      items: [...project.map(item), { text: "Decisions", collapsed: true, items: inFolder(/^docs\/decisions\//) }],
    },
  ];
}

/** @param {string} page */
function addressOf(page) {
  return `/${(renamed.get(page) ?? page).replace(/README\.md$/, "").replace(/\.md$/, "")}`;
}

/** @param {string} page */
function titleOf(page) {
  return titles.get(page) ?? /^# (.+)$/m.exec(readFileSync(inRoot(page), "utf8"))?.[1]?.replaceAll("`", "") ?? page;
}

/** @param {string} page @param {string} text @param {ReadonlySet<string>} pages */
function linked(page, text, pages) {
  const at = (/** @type {string} */ path) => posix.join(posix.dirname(page), path);
  const shown = text.replace(LINK, (...[whole, bang, label, target]) => {
    if (bang === "!" || /^(https?:|mailto:|#)/.test(target)) return whole;
    const [path, anchor] = target.split("#");
    const found = [at(path), posix.join(at(path), "README.md")].find((one) => pages.has(one));
    if (found !== undefined) return `[${label}](${addressOf(found)}${anchor === undefined ? "" : `#${anchor}`})`;
    if (!existsSync(inRoot(at(path)))) throw new Error(`${page}: ${target} does not exist`);
    return label.includes("`") ? label : `\`${label}\``;
  });
  const tabbed = shown.replace(TABS, (blocks) => `::: code-group\n\n${blocks}:::\n\n`);
  return tabbed.replace(PICTURE, (_whole, attribute, path) => `${attribute}./${posix.normalize(path)}"`);
}

/** @param {string} path @param {string} text */
function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function decisions() {
  return readdirSync(inRoot("docs", "decisions")).map((name) => `docs/decisions/${name}`);
}

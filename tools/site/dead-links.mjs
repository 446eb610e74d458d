// The links of a built site that lead nowhere: to a page that is not there, or to a place that its
// page does not have.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix, relative, sep } from "node:path";

const HREF = /<a[^>]* href="([^"]+)"/g;
const SOURCE = /<(?:img|source)[^>]* src(?:set)?="([^"]+)"/g;

/** @param {string} folder @returns {readonly string[]} page: link */
export function deadLinks(folder) {
  const pages = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".html"));
  return pages.flatMap((page) => deadIn(folder, relative(folder, join(folder, page)).replaceAll(sep, "/")));
}

/** @param {string} folder @param {string} page */
function deadIn(folder, page) {
  const html = readFileSync(join(folder, page), "utf8");
  const links = [...new Set([...html.matchAll(HREF), ...html.matchAll(SOURCE)].map(([, link = ""]) => link))];
  return links.filter((link) => !/^([a-z]+:|\/\/)/.test(link) && !leadsSomewhere(folder, page, link)).map((link) => `${page}: ${link}`);
}

/** @param {string} folder @param {string} page @param {string} link */
function leadsSomewhere(folder, page, link) {
  const [path = "", anchor = ""] = link.replaceAll("&amp;", "&").split("#");
  const wanted = decodeURIComponent(path.startsWith("/") ? path.slice(1) : posix.join(posix.dirname(page), path));
  const file = path === "" ? page : [wanted, `${wanted}.html`, posix.join(wanted, "index.html")].find((one) => isFile(join(folder, one)));
  if (file === undefined) return false;
  return anchor === "" || readFileSync(join(folder, file), "utf8").includes(`id="${decodeURIComponent(anchor)}"`);
}

/** @param {string} path */
function isFile(path) {
  return existsSync(path) && statSync(path).isFile();
}

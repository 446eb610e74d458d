// A path that a document names exists: relative links, and paths in backticks from the root.
import { posix } from "node:path";
import type { Checkout, SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";

const LINKS = /\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?\)/g;
const QUOTED = /`((?:packages|tools|spec|docs)\/[\w./-]+)`/g;

export const documentsPointSomewhere: Rule = {
  name: "every path that a document names exists",
  findings: (checkout) => checkout.files.filter((file) => file.path.endsWith(".md")).flatMap((file) => [...dead(checkout, file)]),
};

function* dead(checkout: Checkout, file: SourceFile): Generator<Finding> {
  for (const match of file.text.matchAll(LINKS)) {
    if (!exists(checkout, posix.join(posix.dirname(file.path), match[1] ?? "")))
      yield `${file.at(match.index)}: ${match[1]} does not exist`;
  }
  for (const match of file.text.matchAll(QUOTED)) {
    if (!exists(checkout, match[1] ?? "")) yield `${file.at(match.index)}: ${match[1]} does not exist`;
  }
}

function exists(checkout: Checkout, path: string): boolean {
  const folder = `${path.replace(/\/$/, "")}/`;
  return checkout.file(path) !== undefined || checkout.files.some((file) => file.path.startsWith(folder));
}

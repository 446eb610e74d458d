// One word for one thing: what files and classes are named after stands in docs/glossary.md or is
// an everyday word. Names that say only "something is in here", and words that were given up for
// better ones, are refused.
import { posix } from "node:path";
import type { Checkout, SourceFile } from "./checkout.js";
import { everydayWords, retiredWords } from "./everyday-words.js";
import type { Finding, Rule } from "./rule.js";
import { isNode, nodesOf } from "./syntax.js";

const EMPTY = /(^|[-.])(utils?|helpers?|common|misc)([-.]|$)/;
/**
 * In the name of a test these say what is tested; in the name of a source file they say only what
 * kind of declaration is in it.
 */
const KINDS = /(^|[-.])(types|constants|interfaces)([-.]|$)/;

export const meaningfulNames: Rule = {
  name: "every file is named after what it is about",
  findings: (checkout) =>
    checkout.files.flatMap(({ path }) => {
      if (!/^(packages\/[^/]+\/(src|test)|tools)\/.*\.(ts|mjs|lua|sql)$/.test(path)) return [];
      const stem = posix.basename(path).replace(/\.[a-z]+$/, "");
      const says = !EMPTY.test(stem) && (stem.endsWith(".test") || !KINDS.test(stem));
      return says ? [] : [`${path}:1: the name does not say what is in it`];
    }),
};

export const knownWords: Rule = {
  name: "every word in the name of a file or class stands in the glossary or is an everyday word",
  findings: (checkout) => {
    const known = new Set([...everydayWords, ...glossaryOf(checkout)]);
    return checkout.files.filter(({ path }) => isNamed(path)).flatMap((file) => unknownWords(file, known));
  },
};

function isNamed(path: string): boolean {
  return /^(packages\/[^/]+\/src|tools)\/.*\.(ts|mjs|lua|c)$/.test(path) && !path.includes("/test/");
}

/** The words in the first column of the table, each of its own. */
function glossaryOf(checkout: Checkout): readonly string[] {
  const rows = checkout.file("docs/glossary.md")?.text.matchAll(/^\| ([^|]+) \|/gm) ?? [];
  return [...rows].flatMap(([, term = ""]) => term.toLowerCase().match(/[a-z]+/g) ?? []);
}

function unknownWords(file: SourceFile, known: ReadonlySet<string>): readonly Finding[] {
  const stem = posix.basename(file.path).split(".")[0] ?? "";
  return [stem, ...classNames(file)].flatMap((name) =>
    wordsOf(name)
      .filter((word) => retiredWords.has(word) || ![word, ...singulars(word)].some((form) => known.has(form)))
      .map((word) => `${file.path}:1: "${word}" in ${name}`),
  );
}

function classNames(file: SourceFile): readonly string[] {
  if (!file.isCode || !/\bclass \w/.test(file.text)) return [];
  const classes = [...nodesOf(file.program)].filter(({ node }) => node.type === "ClassDeclaration");
  return classes.flatMap(({ node: { id } }) => (isNode(id) ? [String(id.name)] : []));
}

/** "held-lease" and "HeldLease" → held, lease. */
function wordsOf(name: string): readonly string[] {
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+/g) ?? [];
  return words.map((word) => word.toLowerCase());
}

function singulars(word: string): readonly string[] {
  return [word.replace(/s$/, ""), word.replace(/es$/, ""), word.replace(/ies$/, "y")];
}

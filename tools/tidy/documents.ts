// Documents are read as text too, in editors, terminals and reviews: prose has the width of a page,
// and each decision the same form. What a program made has the form that the program gives it.
import type { Checkout, SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";

const WIDTH = 120;
/** In one of its first lines. */
const MADE = /^(?:[^\n]*\n){0,4}[^\n]*Made by `npm run/;
/** Rows of tables, headings, HTML. */
const UNBREAKABLE = /^\s*(?:\||#|<)/;
const CODE = /^\s*```/;

export const proseWidth: Rule = {
  name: `no prose of a document is wider than ${WIDTH} columns`,
  findings: (checkout) => documentsOf(checkout).flatMap(wideLines),
};

function documentsOf(checkout: Checkout): readonly SourceFile[] {
  return checkout.files.filter(({ path, text }) => path.endsWith(".md") && !MADE.test(text));
}

function wideLines({ path, lines }: SourceFile): readonly Finding[] {
  let isCode = false;
  return lines.flatMap((line, index) => {
    if (CODE.test(line)) isCode = !isCode;
    if (isCode || line.length <= WIDTH || UNBREAKABLE.test(line) || !/\S .*$/.test(line.slice(0, WIDTH))) return [];
    return [`${path}:${index + 1}: ${line.length} columns`];
  });
}

const DECISION = /^docs\/adr\/(\d{4})-[^/]+\.md$/;
const CHAPTERS = ["Problem", "Decision", "Alternatives", "Consequences"];
/** Of a decision that was replaced only the decision is kept. */
const REPLACED = /^Replaced by \[ADR \d{4}\]/m;

export const decisionForm: Rule = {
  name: "every decision begins with its number and says problem, decision, alternatives and consequences",
  findings: (checkout) => checkout.files.flatMap((file) => [...missingIn(file, DECISION.exec(file.path)?.[1])]),
};

function* missingIn({ path, text }: SourceFile, number: string | undefined): Generator<Finding> {
  if (number === undefined) return;
  if (!text.startsWith(`# ${number}. `)) yield `${path}:1: does not begin with "# ${number}. "`;
  for (const chapter of REPLACED.test(text) ? ["Decision"] : CHAPTERS)
    if (!text.includes(`\n## ${chapter}\n`)) yield `${path}:1: has no chapter "## ${chapter}"`;
}

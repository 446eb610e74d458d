// Every source file opens with a comment that says what the file does, and comments are narrow
// enough to be read at a glance, whatever the width of the code beside them.
import type { SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";

const WIDTH = 100;
/** A line that is nothing but a comment. */
const COMMENT = /^\s*(\/\/|\/?\*+[ /])/;
const SCRIPT_COMMENT = /^\s*--/;
/** What must stay in one line: addresses, types, and directives to other tools. */
const UNBREAKABLE = /https?:\/\/|biome-ignore|@ts-|@param|@type|@returns|@property/;
/** What is generated, and migrations, which are never edited once released. */
const EXEMPT = /\/migrations\/|\.generated\./;
const SOURCES = /^(packages|tools)\/.*\.(ts|mjs|lua|sql|c)$/;

export const openingComments: Rule = {
  name: "every source file opens with a comment",
  findings: (checkout) =>
    checkout.files.flatMap((file) => {
      if (!SOURCES.test(file.path) || /^packages\/[^/]+\/(?!src\/)/.test(file.path)) return [];
      const [first = "", second = ""] = file.lines;
      const opening = first.startsWith("#!") ? second : first;
      return /^(\/\/|\/\*|--)/.test(opening) ? [] : [`${file.path}:1: does not open with a comment`];
    }),
};

export const commentWidth: Rule = {
  name: `no comment is wider than ${WIDTH} columns`,
  findings: (checkout) => checkout.files.filter(({ path }) => SOURCES.test(path) && !EXEMPT.test(path)).flatMap(wideLines),
};

function wideLines(file: SourceFile): readonly Finding[] {
  const comment = /\.(lua|sql)$/.test(file.path) ? SCRIPT_COMMENT : COMMENT;
  return file.lines.flatMap((line, index) => {
    if (line.length <= WIDTH || !comment.test(line) || UNBREAKABLE.test(line)) return [];
    return [`${file.path}:${index + 1}: ${line.length} columns`];
  });
}

// The lengths that Biome cannot judge: of functions in tests, where the body of describe is a
// chapter, and of Lua, SQL and C.
import type { SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";
import { type Node, nodesOf, rootName } from "./syntax.js";

const FILE_LIMIT = 300;
const TEST_FILE_LIMIT = 500;
const FUNCTION_LIMIT = 50;
const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

export const fileLength: Rule = {
  name: `no file is longer than ${FILE_LIMIT} lines, no test than ${TEST_FILE_LIMIT}`,
  findings: (checkout) =>
    checkout.files.flatMap(({ path, lines, isTest }) => {
      if (!/^(packages|tools)\/.*\.(ts|mjs|lua|sql|c)$/.test(path) || path.includes(".generated.")) return [];
      const limit = isTest ? TEST_FILE_LIMIT : FILE_LIMIT;
      const length = lines.length - 1;
      return length > limit ? [`${path}:${limit}: ${length} lines, ${limit} allowed`] : [];
    }),
};

export const testLength: Rule = {
  name: `no function in a test is longer than ${FUNCTION_LIMIT} lines`,
  findings: (checkout) => checkout.code.filter(({ path }) => path.includes("/test/")).flatMap(longFunctions),
};

function longFunctions(file: SourceFile): readonly Finding[] {
  return [...nodesOf(file.program)].flatMap(({ node, parent }) => {
    if (!functions.has(node.type) || isChapter(parent)) return [];
    const length = file.text.slice(node.start, node.end).split("\n").length;
    if (length <= FUNCTION_LIMIT) return [];
    return [`${file.at(node.start)}: a function of ${length} lines, ${FUNCTION_LIMIT} allowed`];
  });
}

function isChapter(parent: Node | undefined): boolean {
  return parent?.type === "CallExpression" && rootName(parent.callee) === "describe";
}

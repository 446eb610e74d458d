// Nothing is too long to be read in one go: files and functions have hard limits, and a function with more than three parameters takes a named object.
import type { SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";
import { isNode, isRunner, memberName, type Node, nodesOf, rootName } from "./syntax.js";

const fileLimit = 300;
const testFileLimit = 500;
const functionLimit = 50;
const parameterLimit = 3;
const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

export const fileLength: Rule = {
  name: `no file is longer than ${fileLimit} lines, no test than ${testFileLimit}`,
  findings: (checkout) =>
    checkout.files.flatMap((file) => {
      if (!/^(packages|tools)\/.*\.(ts|mjs|lua|sql|c)$/.test(file.path) || file.path.includes(".generated.")) return [];
      const limit = file.isTest ? testFileLimit : fileLimit;
      const length = file.lines.length - 1;
      return length > limit ? [`${file.path}:${limit}: ${length} lines, ${limit} allowed`] : [];
    }),
};

export const functionLength: Rule = {
  name: `no function is longer than ${functionLimit} lines`,
  findings: (checkout) =>
    checkout.code.flatMap((file) => functionsOf(file).flatMap(({ node, parent }) => (isGroup(parent) ? [] : tooLong(file, node)))),
};

export const parameterCount: Rule = {
  name: `no function takes more than ${parameterLimit} parameters`,
  findings: (checkout) =>
    checkout.code.flatMap((file) => functionsOf(file).flatMap(({ node, parent }) => (isRow(parent) ? [] : tooMany(file, node)))),
};

function functionsOf(file: SourceFile) {
  return [...nodesOf(file.program)].filter(({ node }) => functions.has(node.type));
}

function tooLong(file: SourceFile, node: Node): readonly Finding[] {
  const length = file.text.slice(node.start, node.end).split("\n").length;
  return length > functionLimit ? [`${file.at(node.start)}: a function of ${length} lines, ${functionLimit} allowed`] : [];
}

function tooMany(file: SourceFile, node: Node): readonly Finding[] {
  const parameters = Array.isArray(node.params) ? node.params.filter(isNode) : [];
  if (parameters.length <= parameterLimit || isErrorHandler(parameters)) return [];
  return [`${file.at(node.start)}: ${parameters.length} parameters, ${parameterLimit} allowed`];
}

/** The body of describe(…) is a chapter, not a function. */
function isGroup(parent: Node | undefined): boolean {
  return parent?.type === "CallExpression" && rootName(parent.callee) === "describe";
}

/** The parameters of a test over a table are the columns of the table; those of a property are its arbitraries. */
function isRow(parent: Node | undefined): boolean {
  if (parent?.type !== "CallExpression") return false;
  const callee = parent.callee as Node;
  return (
    (callee.type === "CallExpression" && isRunner(rootName(callee))) || ["property", "asyncProperty"].includes(memberName(callee) ?? "")
  );
}

/** Express knows an error handler by its four parameters. */
function isErrorHandler(parameters: readonly Node[]): boolean {
  return parameters.length === 4 && /^_?(err|error)$/.test(String(parameters[0]?.name));
}

// No test is left out, alone, expected to fail or tried again: a green suite has run whole, once.
import type { SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";
import { isNode, isRunner, memberName, type Node, nodesOf, rootName, testCalls } from "./syntax.js";

const modifiers = new Set(["only", "skip", "todo", "skipIf", "runIf", "fails"]);
const options = new Set([...modifiers, "retry"]);

export const honestTests: Rule = {
  name: "no test is skipped, singled out, postponed or retried",
  findings: (checkout) => checkout.code.filter((file) => file.isTest).flatMap((file) => [...modified(file), ...optioned(file)]),
};

function modified(file: SourceFile): readonly Finding[] {
  return [...nodesOf(file.program)].flatMap(({ node }) => {
    const name = memberName(node) ?? "";
    return modifiers.has(name) && isRunner(rootName(node.object)) ? [`${file.at(node.start)}: .${name}`] : [];
  });
}

function optioned(file: SourceFile): readonly Finding[] {
  return [...testCalls(file.program)].flatMap(({ args }) =>
    args.filter((arg): arg is Node => isNode(arg) && arg.type === "ObjectExpression").flatMap((arg) => forbiddenKeys(file, arg)),
  );
}

function forbiddenKeys(file: SourceFile, object: Node): readonly Finding[] {
  const properties = Array.isArray(object.properties) ? object.properties.filter(isNode) : [];
  return properties.flatMap((property) => {
    const key = isNode(property.key) ? String(property.key.name) : "";
    return options.has(key) ? [`${file.at(property.start)}: ${key}`] : [];
  });
}

// Syntax trees, and the few questions that more than one rule asks of them. The parser is the one
// that vitest brings along.
import { parseAst } from "vitest/node";

export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

export type Program = Node;

export function parse(path: string, text: string): Program {
  return parseAst(text, { lang: path.endsWith("ts") ? "ts" : "js" }, path) as unknown as Program;
}

/** This node and every one below, parents first; `parent` is undefined for the node itself. */
export function* nodesOf(node: Node, parent?: Node): Generator<{ readonly node: Node; readonly parent: Node | undefined }> {
  yield { node, parent };
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) yield* nodesOf(child, node);
    }
  }
}

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string" && "start" in value;
}

/** `a` of a, a.b, a.b(…).c(…): what a chain of members and calls starts from. */
export function rootName(expression: unknown): string | undefined {
  if (!isNode(expression)) return undefined;
  if (expression.type === "Identifier") return String(expression.name);
  return rootName(expression.object ?? expression.callee ?? expression.tag);
}

/** `now` of Date.now; undefined for computed members. */
export function memberName(expression: unknown): string | undefined {
  if (!isNode(expression) || expression.type !== "MemberExpression" || expression.computed === true) return undefined;
  return isNode(expression.property) ? String(expression.property.name) : undefined;
}

/** The text of a string literal, or of a template up to its first expression. */
export function leadingText(expression: unknown): string | undefined {
  if (!isNode(expression)) return undefined;
  if (expression.type === "Literal" && typeof expression.value === "string") return expression.value;
  if (expression.type !== "TemplateLiteral" || !Array.isArray(expression.quasis)) return undefined;
  return (expression.quasis as readonly { value: { cooked: string } }[])[0]?.value.cooked;
}

export function isRunner(name: string | undefined): boolean {
  return name !== undefined && ["test", "it", "describe", "bench", "suite"].includes(name);
}

/** Calls of test(…) and it(…) in any of their forms: test.each(…)(…), test.for(…)(…). */
export function* testCalls(
  program: Program,
): Generator<{ readonly call: Node; readonly title: string | undefined; readonly args: readonly unknown[] }> {
  for (const { node } of nodesOf(program)) {
    if (node.type !== "CallExpression" || !isRunner(rootName(node.callee))) continue;
    const args = Array.isArray(node.arguments) ? node.arguments : [];
    yield { call: node, title: leadingText(args[0]), args };
  }
}

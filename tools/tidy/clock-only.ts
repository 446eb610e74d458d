// Only clock.ts of the lock reads a clock, sets a timer or draws a random delay: that is what makes
// the rest of the lock a function of what it is told.
import type { SourceFile } from "./checkout.js";
import { importsOf } from "./imports.js";
import type { Finding, Rule } from "./rule.js";
import { memberName, type Node, nodesOf, rootName } from "./syntax.js";

const HOME = "packages/lock/src/platform/clock.ts";
const calls = new Set(["setTimeout", "setInterval"]);
const members = new Set([
  "Date.now",
  "process.hrtime",
  "process.uptime",
  "Math.random",
  "AbortSignal.timeout",
  "globalThis.setTimeout",
  "globalThis.setInterval",
]);
const MODULES = /^(node:)?(timers|timers\/promises|perf_hooks)$/;

export const clockOnly: Rule = {
  name: "in the lock only clock.ts knows the time",
  findings: (checkout) =>
    checkout
      .sourcesOf("lock")
      .filter((file) => file.isCode && file.path !== HOME)
      .flatMap((file) => [...readings(file), ...timeImports(file)]),
};

function readings(file: SourceFile): readonly Finding[] {
  return [...nodesOf(file.program)].flatMap(({ node }) =>
    readsTime(node) ? [`${file.at(node.start)}: time is asked for outside clock.ts`] : [],
  );
}

function readsTime(node: Node): boolean {
  if (node.type === "CallExpression") return calls.has(calleeName(node)) || calleeName(node) === "Date";
  if (node.type === "NewExpression") return calleeName(node) === "Date";
  const object = node.type === "MemberExpression" ? rootName(node.object) : undefined;
  return object === "performance" || members.has(`${object}.${memberName(node)}`);
}

function calleeName(node: Node): string {
  return (node.callee as Node).type === "Identifier" ? String((node.callee as Node).name) : "";
}

function timeImports(file: SourceFile): readonly Finding[] {
  return importsOf(file).flatMap(({ specifier, offset }) =>
    MODULES.test(specifier) ? [`${file.at(offset)}: ${specifier} outside clock.ts`] : [],
  );
}

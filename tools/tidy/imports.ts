// Which module names which: every import, re-export, dynamic import and import type, with relative
// ones resolved to the file in the checkout.
import { posix } from "node:path";
import type { SourceFile } from "./checkout.js";
import { leadingText, nodesOf } from "./syntax.js";

export interface Import {
  readonly specifier: string;
  readonly offset: number;
  /** Path of the file it names when it is relative, whether or not that file exists. */
  readonly target: string | undefined;
}

const naming = new Set(["ImportDeclaration", "ExportNamedDeclaration", "ExportAllDeclaration", "ImportExpression", "TSImportType"]);

export function importsOf(file: SourceFile): readonly Import[] {
  return [...nodesOf(file.program)].flatMap(({ node }) => {
    const specifier = naming.has(node.type) ? leadingText(node.source ?? node.argument) : undefined;
    if (specifier === undefined) return [];
    return [{ specifier, offset: node.start, target: resolve(file.path, specifier) }];
  });
}

/** Sources name each other by their compiled names. */
function resolve(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  return posix.join(posix.dirname(from), specifier.replace(/\.js$/, ".ts"));
}

// Which module names which: every import, re-export, dynamic import and import type, with relative ones resolved to the file in the checkout. Decides nothing.
import { posix } from "node:path";
import type { Checkout, SourceFile } from "./checkout.js";
import { leadingText, nodesOf } from "./syntax.js";

export interface Import {
  readonly specifier: string;
  readonly offset: number;
  /** Path of the file it names when it is relative, whether or not that file exists. */
  readonly target: string | undefined;
}

const naming = new Set(["ImportDeclaration", "ExportNamedDeclaration", "ExportAllDeclaration", "ImportExpression"]);

export function importsOf(file: SourceFile): readonly Import[] {
  const found: Import[] = [];
  for (const { node } of nodesOf(file.program)) {
    const specifier = naming.has(node.type)
      ? leadingText(node.source)
      : node.type === "TSImportType"
        ? leadingText(node.source ?? node.argument)
        : undefined;
    if (specifier !== undefined) found.push({ specifier, offset: node.start, target: resolve(file.path, specifier) });
  }
  return found;
}

/** The files of the checkout that this one imports. */
export function neighboursOf(checkout: Checkout, file: SourceFile): readonly SourceFile[] {
  return importsOf(file).flatMap(({ target }) => (target === undefined ? [] : (checkout.file(target) ?? [])));
}

/** Sources name each other by their compiled names. */
function resolve(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  return posix.join(posix.dirname(from), specifier.replace(/\.js$/, ".ts"));
}

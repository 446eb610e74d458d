// Which module names which: every import, re-export, dynamic import and import type, with relative ones resolved to the file in the checkout. Decides nothing.
import { posix } from "node:path";
import type { Checkout, SourceFile } from "./checkout.js";
import { leadingText, type Node, nodesOf } from "./syntax.js";

export interface Import {
  readonly specifier: string;
  readonly offset: number;
  /** Path of the file it names when it is relative, whether or not that file exists. */
  readonly target: string | undefined;
  /** It names only types, so nothing of it is left when the program runs. */
  readonly erased: boolean;
}

const naming = new Set(["ImportDeclaration", "ExportNamedDeclaration", "ExportAllDeclaration", "ImportExpression", "TSImportType"]);

export function importsOf(file: SourceFile): readonly Import[] {
  return [...nodesOf(file.program)].flatMap(({ node }) => {
    const specifier = naming.has(node.type) ? leadingText(node.source ?? node.argument) : undefined;
    if (specifier === undefined) return [];
    return [{ specifier, offset: node.start, target: resolve(file.path, specifier), erased: isErased(node) }];
  });
}

/** The files of the checkout that this one loads when it runs. */
export function loadedBy(checkout: Checkout, file: SourceFile): readonly SourceFile[] {
  const targets = importsOf(file).flatMap(({ target, erased }) => (target === undefined || erased ? [] : [target]));
  return targets.flatMap((target) => checkout.file(target) ?? []);
}

/** The files of the checkout that this one names, be it for a type only. */
export function namedBy(checkout: Checkout, file: SourceFile): readonly SourceFile[] {
  return importsOf(file).flatMap(({ target }) => (target === undefined ? [] : (checkout.file(target) ?? [])));
}

/** `import { type A }` is not erased: under verbatimModuleSyntax an empty import of the module remains. */
function isErased(node: Node): boolean {
  return node.type === "TSImportType" || node.importKind === "type" || node.exportKind === "type";
}

/** Sources name each other by their compiled names. */
function resolve(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  return posix.join(posix.dirname(from), specifier.replace(/\.js$/, ".ts"));
}

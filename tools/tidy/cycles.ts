// No file reaches itself through its imports: in a cycle, the file that is loaded first sees the other one half made. Imports of types are gone at run time; they count
// in the packages that layers.ts lists, where a reader shall find an order too.
import type { Checkout, SourceFile } from "./checkout.js";
import { loadedBy, namedBy } from "./imports.js";
import { layersOf } from "./layers.js";
import type { Finding, Rule } from "./rule.js";

export const noCycles: Rule = {
  name: "there is no cycle of imports",
  findings: (checkout) => {
    const done = new Set<SourceFile>();
    return checkout.code.flatMap((file) => cyclesFrom(checkout, { file, path: [], done }));
  },
};

interface Visit {
  readonly file: SourceFile;
  /** How we came here. */
  readonly path: readonly SourceFile[];
  /** Files from which every way was followed. */
  readonly done: Set<SourceFile>;
}

function cyclesFrom(checkout: Checkout, { file, path, done }: Visit): readonly Finding[] {
  const before = path.indexOf(file);
  if (before >= 0) return [`${file.path}:1: ${[...path.slice(before), file].map((one) => one.path).join(" → ")}`];
  if (done.has(file)) return [];
  const found = followed(checkout, file).flatMap((next) => cyclesFrom(checkout, { file: next, path: [...path, file], done }));
  done.add(file);
  return found;
}

function followed(checkout: Checkout, file: SourceFile): readonly SourceFile[] {
  const [, name = ""] = /^packages\/([^/]+)\/src\//.exec(file.path) ?? [];
  return name in layersOf ? namedBy(checkout, file) : loadedBy(checkout, file);
}

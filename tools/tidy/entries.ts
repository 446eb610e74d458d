// The export map is the API: an index.ts exists exactly where a package's `exports` names one, so
// no folder grows a second, private front door.
import { posix } from "node:path";
import type { Checkout, SourceFile } from "./checkout.js";
import type { Rule } from "./rule.js";

export const oneEntry: Rule = {
  name: "an index.ts stands only where the package's exports name it",
  findings: (checkout) =>
    checkout.sourcesOf().flatMap((file) => {
      if (posix.basename(file.path) !== "index.ts" || entriesFor(checkout, file).has(file.path)) return [];
      return [`${file.path}:1: no entry of the package's exports leads here`];
    }),
};

function entriesFor(checkout: Checkout, file: SourceFile): ReadonlySet<string> {
  const root = file.path.split("/").slice(0, 2).join("/");
  const manifest = JSON.parse(checkout.file(`${root}/package.json`)?.text ?? "{}") as {
    exports?: Record<string, string | { default?: string }>;
  };
  const outputs = Object.values(manifest.exports ?? {}).map((target) => (typeof target === "string" ? target : (target.default ?? "")));
  return new Set(outputs.map((output) => posix.join(root, output.replace("./dist/", "src/").replace(/\.js$/, ".ts"))));
}

// What publint and are-the-types-wrong find in a tarball. The packages are ESM only, which Node's
// own require loads as well (20.19, 22.12); TypeScript before 5.8 and Node 10 resolution are not
// promised for CommonJS.
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { filterProblems, problemKindInfo } from "@arethetypeswrong/core/problems";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { inRoot } from "../go/checkout.mjs";

/** @param {string} name @param {string} tarball @returns {Promise<readonly string[]>} one line per finding */
export async function judge(name, tarball) {
  const bytes = readFileSync(tarball);
  const { exports } = JSON.parse(readFileSync(inRoot("packages", name, "package.json"), "utf8"));
  // A program has no types.
  const isLibrary = "." in exports;
  return [...(await judgeManifest(bytes)), ...(isLibrary ? [...(await judgeTypes(bytes)), ...foreignTypes(name)] : [])];
}

/** @param {Buffer} bytes */
async function judgeManifest(bytes) {
  const tarball = Uint8Array.from(bytes).buffer;
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  return messages.map((message) => `publint ${message.type}: ${formatMessage(message, pkg, { color: false }) ?? message.code}`);
}

/** @param {Buffer} bytes */
async function judgeTypes(bytes) {
  const analysis = await checkPackage(createPackageFromTarballData(bytes));
  if (analysis.types === false) return ["are-the-types-wrong: the package contains no types"];
  const promised = /** @type {const} */ (["node16-esm", "bundler"]).flatMap((resolutionKind) =>
    filterProblems(analysis, { resolutionKind }),
  );
  return [...new Set(promised)].map((problem) => `are-the-types-wrong: ${problemKindInfo[problem.kind].title} ${JSON.stringify(problem)}`);
}

/**
 * What the types of a package name has to be installed with it, and has to bring its own types:
 * otherwise a user's compiler finds none. Follows the imports from the entry.
 * @param {string} name
 */
function foreignTypes(name) {
  const { dependencies = {} } = JSON.parse(readFileSync(inRoot("packages", name, "package.json"), "utf8"));
  const seen = new Set();
  /** @type {string[]} */
  const findings = [];
  const visit = (/** @type {string} */ file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    for (const [, specifier = ""] of text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)) {
      const isOwn = specifier.startsWith(".");
      if (isOwn) visit(join(dirname(file), specifier.replace(/\.js$/, ".d.ts")));
      else if (!specifier.startsWith("node:") && !(specifier in dependencies && bringsTypes(name, specifier)))
        findings.push(`${basename(file)} names the types of ${specifier}, which users do not get`);
    }
  };
  visit(inRoot("packages", name, "dist", "index.d.ts"));
  return findings;
}

/** @param {string} name @param {string} dependency */
function bringsTypes(name, dependency) {
  const { types, typings, exports } = JSON.parse(
    readFileSync(inRoot("packages", name, "node_modules", dependency, "package.json"), "utf8"),
  );
  return types !== undefined || typings !== undefined || JSON.stringify(exports ?? {}).includes('"types"');
}

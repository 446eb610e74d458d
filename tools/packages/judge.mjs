// What publint and are-the-types-wrong find in a tarball. The packages are ESM only, which Node's
// own require loads as well (20.19, 22.12); TypeScript before 5.8 and Node 10 resolution are not
// promised for CommonJS.
import { readFileSync } from "node:fs";
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
  return [...(await judgeManifest(bytes)), ...("." in exports ? await judgeTypes(bytes) : [])];
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

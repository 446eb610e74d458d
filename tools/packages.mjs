// Packs the published packages exactly as they would be uploaded and lets publint and
// are-the-types-wrong judge the tarballs. Decides only which findings do not apply: they
// are ESM only, so resolution from CommonJS without require(esm) and from Node 10 is not promised.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { filterProblems, problemKindInfo } from "@arethetypeswrong/core/problems";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { inRoot } from "./go/checkout.mjs";
import { run } from "./go/child.mjs";
import { pnpm } from "./go/pnpm.mjs";

const published = ["lock", "client", "gateway"];

const directory = mkdtempSync(join(tmpdir(), "palisade-packages-"));
try {
  for (const name of published) report(name, await judge(name));
} finally {
  rmSync(directory, { recursive: true, force: true });
}

/** @param {string} name @returns {Promise<readonly string[]>} one line per finding */
async function judge(name) {
  const tarball = join(directory, `${name}.tgz`);
  const { code, output } = await run([...(await pnpm()), "pack", "--out", tarball], { output: "kept", cwd: inRoot("packages", name) });
  if (code !== 0) return [`pnpm pack failed:\n${output}`];
  const bytes = readFileSync(tarball);
  return [...(await judgeManifest(bytes)), ...(await judgeTypes(bytes))];
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

/** @param {string} name @param {readonly string[]} findings */
function report(name, findings) {
  console.log(
    `@palisade/${name}: ${findings.length === 0 ? "publint and are-the-types-wrong find nothing" : `${findings.length} findings`}`,
  );
  for (const finding of findings) console.log(`  ${finding}`);
  if (findings.length > 0) process.exitCode = 1;
}

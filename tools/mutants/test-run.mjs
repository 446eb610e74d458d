// Runs test files of one copy and says what they found. Decides what counts as red: a test that
// failed, by an assertion or by its own time limit. A file that could not be loaded, an error
// outside of tests and a run without end are no verdict of a test.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { run } from "../go/child.mjs";

/**
 * @typedef {{ readonly kind: "green" } | { readonly kind: "red", readonly title: string, readonly file: string, readonly message: string } | { readonly kind: "unclear", readonly why: string }} Finding
 * @typedef {{ readonly status: string, readonly fullName: string, readonly failureMessages?: readonly string[] }} Assertion
 * @typedef {{ readonly name: string, readonly status: string, readonly message: string, readonly assertionResults: readonly Assertion[] }} FileReport
 */

/** What vitest reports of a test that took too long, before the place where the test stands. */
const TIME_LIMIT = /^Error: STACK_TRACE_ERROR/;
/** Longer than any part of the suite takes, many times over. */
const LONGEST_MS = 1_200_000;

/**
 * @param {string} folder the copy
 * @param {readonly string[]} filters what vitest looks for in the paths of test files
 * @param {string} [shard] "1/2": the first half of those files
 * @returns {Promise<Finding>}
 */
export async function runTests(folder, filters, shard) {
  const report = join(folder, ".mutant-report.json");
  rmSync(report, { force: true });
  // Beside another copy.
  const workers = `--maxWorkers=${availableParallelism()}`;
  const vitest = [join("node_modules", "vitest", "vitest.mjs"), "run", "--project", "unit", "--project", "real", workers];
  const options = ["--bail=1", "--reporter=json", `--outputFile=${report}`, ...(shard === undefined ? [] : [`--shard=${shard}`])];
  const command = [process.execPath, ...vitest, ...options, ...filters];
  // Asked to end: it stops the servers that it started, and takes their data away.
  const { code, output } = await run(command, { output: "kept", ending: "asked", limitMs: LONGEST_MS, cwd: folder });
  return findingOf(existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).testResults : [], { code, output, folder });
}

/**
 * @param {readonly FileReport[]} files
 * @param {{ readonly code: number, readonly output: string, readonly folder: string }} ended
 * @returns {Finding}
 */
export function findingOf(files, { code, output, folder }) {
  for (const { name, assertionResults } of files) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (failed === undefined) continue;
    const message = (failed.failureMessages?.[0] ?? "").replace(TIME_LIMIT, "it did not end within its time limit");
    return { kind: "red", title: failed.fullName, file: name.replace(`${folder}/`, ""), message };
  }
  if (code === 0 && files.some(({ assertionResults }) => assertionResults.length > 0)) return { kind: "green" };
  const broken = files.find(({ status }) => status === "failed");
  const why = broken === undefined ? output.trim().split("\n").slice(-15).join("\n") : `${broken.name}: ${broken.message}`;
  return { kind: "unclear", why: `no test failed, and yet the run did (${code}): ${why}` };
}

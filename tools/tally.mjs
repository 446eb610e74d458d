// Reads vitest's JSON report and prints `N passed, N failed` as its last line. Decides what counts:
// a file that could not run, and a run that failed although every test passed (an error outside the
// tests), are failures too. Exits with 1 when anything failed or nothing ran at all. Usage: node
// tools/tally.mjs <report.json> <exit code of the test command> [number of other failed checks]
import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/**
 * @typedef {{ status: string, assertionResults: readonly { status: string }[] }} FileReport
 * @param {{ numPassedTests: number, numFailedTests: number, testResults: readonly FileReport[] } | undefined} report
 * @param {number} exitCode
 */
export function tally(report, exitCode) {
  const broken = report?.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.every((test) => test.status !== "failed"),
  );
  const passed = report?.numPassedTests ?? 0;
  const failed = (report?.numFailedTests ?? 0) + (broken?.length ?? 0);
  return { passed, failed: failed === 0 && (exitCode !== 0 || passed === 0) ? 1 : failed };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [file = "", exitCode, others] = process.argv.slice(2);
  const { passed, failed } = tally(existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined, Number(exitCode));
  const all = failed + Number(others ?? 0);
  console.log(`${passed} passed, ${all} failed`);
  process.exitCode = all === 0 ? 0 : 1;
}

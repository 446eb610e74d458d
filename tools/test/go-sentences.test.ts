// What goes wrong on a user's machine is said in one sentence, with an exit code that is not 0.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { explained } from "../go/explain.mjs";
import { tally } from "../tally.mjs";
import { moduleOf, Program, pathOf } from "./programs.js";

const goWith = (version: string, ...args: string[]): Program =>
  new Program(
    `Object.defineProperty(process.versions, "node", { value: ${JSON.stringify(version)} });
     process.argv.splice(1, Infinity, ${JSON.stringify(pathOf("go.mjs"))}, ...${JSON.stringify(args)});
     await import(${moduleOf("go.mjs")});`,
  );

test.each(["12.22.12", "18.20.0", "20.18.3", "21.7.0", "22.11.0"])("Node %s is refused", async (version) => {
  const program = goWith(version, "test");
  expect((await program.ends()).code).toBe(1);
  expect(program.output).toMatch(/^palisade: Node 20\.19, 22\.12 or newer is needed; this is Node [\d.]+ \(.+\)\.\n$/);
});

test.each(["20.19.0", "22.12.0", "23.0.0", "24.1.0"])(
  "Node %s is taken, and an unknown task is refused with the names of all",
  async (version) => {
    const program = goWith(version, "tset");
    expect((await program.ends()).code).toBe(1);
    expect(program.output).toMatch(/^palisade: there is no task "tset"; there are .*\bdemo\b.*\btest\b.*\n$/);
  },
);

test.each([
  [
    "npm error FetchError: request to http://127.0.0.1:9/pnpm failed, reason: connect ECONNREFUSED 127.0.0.1:9",
    "http://127.0.0.1:9",
    "ECONNREFUSED",
  ],
  ["GET https://packages.example/vitest error (ENOTFOUND). Will retry", "https://packages.example", "ENOTFOUND"],
  ["ERR_PNPM_META_FETCH_FAIL the request failed", "the package registry", "ERR_PNPM_META_FETCH_FAIL"],
])("a registry that does not answer is one sentence: %s", (output, address, sign) => {
  const message = explained("the dependencies", output)?.message;
  expect(message).toContain(`the dependencies could not be fetched: ${address} did not answer (${sign}).`);
  expect(message).not.toContain("\n");
});

test("a registry that has not got it is one sentence too", () => {
  const output = "ERR_PNPM_FETCH_404  GET http://127.0.0.1:9/core/-/core-0.18.5.tgz: Not Found - 404";
  expect(explained("the dependencies", output)?.message).toContain("http://127.0.0.1:9/core/-/core-0.18.5.tgz was answered with 404.");
});

test.each([
  " WARN  GET https://packages.example/typescript.tgz error (ERR_PNPM_ENOSPC). Will retry in 500 milliseconds. 2 retries left.",
  "npm error code ENOSPC\nnpm error syscall write\nnpm error errno -28",
  "error TS5033: Could not write file 'main.js': EDQUOT: disk quota exceeded, write",
])("a full disk is one sentence and not blamed on the network: %s", (output) => {
  const message = explained("the dependencies", output)?.message;
  expect(message).toMatch(/^there is no space left on a disk that is needed \((ENOSPC|EDQUOT)\)/);
  expect(message).not.toContain("\n");
});

test("any other failure of an installation is not blamed on the network", () => {
  expect(explained("the dependencies", "ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with frozen-lockfile")).toBeUndefined();
});

test("a HOME that does not exist is replaced by a folder of the clone and not created", async () => {
  const directory = mkdtempSync(join(tmpdir(), "palisade-home-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const missing = join(directory, "none");
  const program = new Program(
    `import { existsSync } from "node:fs";
     import { settleHome } from ${moduleOf("go/home.mjs")};
     console.log(settleHome(), process.env.HOME, process.env.npm_config_cache, process.env.npm_config_userconfig, existsSync(${JSON.stringify(missing)}));`,
    { PATH: process.env.PATH, HOME: missing, npm_config_cache: join(missing, ".npm") },
  );
  await program.ends();
  expect(program.output).toContain(`HOME (${missing}) cannot be written`);
  expect(program.output).toContain(`.cache/home undefined ${join(missing, ".npmrc")} false`);
});

const files = (...statuses: readonly (readonly string[])[]) =>
  statuses.map(([status = "", ...tests]) => ({ status, assertionResults: tests.map((one) => ({ status: one })) }));

test.each([
  ["all passed", { numPassedTests: 2, numFailedTests: 0, testResults: files(["passed", "passed", "passed"]) }, 0, { passed: 2, failed: 0 }],
  ["one failed", { numPassedTests: 1, numFailedTests: 1, testResults: files(["failed", "passed", "failed"]) }, 1, { passed: 1, failed: 1 }],
  [
    "a file could not be loaded",
    { numPassedTests: 1, numFailedTests: 0, testResults: files(["passed", "passed"], ["failed"]) },
    1,
    { passed: 1, failed: 1 },
  ],
  [
    "an error outside the tests",
    { numPassedTests: 1, numFailedTests: 0, testResults: files(["passed", "passed"]) },
    1,
    { passed: 1, failed: 1 },
  ],
  ["nothing ran", { numPassedTests: 0, numFailedTests: 0, testResults: [] }, 0, { passed: 0, failed: 1 }],
  ["no report at all", undefined, 1, { passed: 0, failed: 1 }],
])("the tally is right when %s", (_, report, exitCode, expected) => {
  expect(tally(report, exitCode)).toEqual(expected);
});

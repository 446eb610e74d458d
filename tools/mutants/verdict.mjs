// One mutant and its verdict: first the tests that are expected to notice it run, then, if they
// stay green, all tests of its package.
import { suiteOf, testsOf } from "./mutant.mjs";
import { runTests } from "./test-run.mjs";

const CHANCES = 3;

/**
 * killed: a test went red. survived: none did. unclear: the mutant could not be judged, which is no
 * better.
 * @typedef {{ readonly verdict: "killed", readonly title: string, readonly file: string, readonly expected: boolean }
 * | { readonly verdict: "survived" } | { readonly verdict: "unclear", readonly why: string }}
 * Verdict
 * @typedef {import("./mutant.mjs").Mutant & { readonly result: Verdict, readonly seconds: number }} Outcome
 */

/**
 * @param {import("./tree-copy.mjs").TreeCopy} copy
 * @param {import("./mutant.mjs").Mutant} mutant
 * @returns {Promise<Outcome>}
 */
export async function judge(copy, mutant) {
  const startedAt = performance.now();
  const result = await copy.with([mutant], async (built) =>
    built.ok ? judgedByExpected(copy.folder, mutant) : unclear(`it does not compile, so no test has judged it: ${built.output.trim()}`),
  );
  return { ...mutant, result, seconds: (performance.now() - startedAt) / 1_000 };
}

/**
 * @param {string} folder
 * @param {import("./mutant.mjs").Mutant} mutant
 * @returns {Promise<Verdict>}
 */
async function judgedByExpected(folder, mutant) {
  const named = await runTests(folder, testsOf(mutant));
  if (named.kind === "red") return { verdict: "killed", title: named.title, file: named.file, expected: true };
  if (named.kind === "unclear") return unclear(named.why);
  return judgedByAll(folder, suiteOf(mutant));
}

/**
 * An unexpected test may have failed by chance, on a busy machine, so it has to fail again.
 * @param {string} folder @param {string} suite @returns {Promise<Verdict>}
 */
async function judgedByAll(folder, suite) {
  const titles = [];
  for (let tries = 0; tries < CHANCES; tries++) {
    const all = await runTests(folder, [suite]);
    if (all.kind === "green") return { verdict: "survived" };
    if (all.kind === "unclear") return unclear(all.why);
    const again = await runTests(folder, [all.file]);
    if (again.kind === "red" && again.title === all.title) return { verdict: "killed", title: all.title, file: all.file, expected: false };
    titles.push(`${all.file}: ${all.title}`);
  }
  return unclear(`these tests failed once and not again\n  ${titles.join("\n  ")}`);
}

/** @param {string} why @returns {Verdict} */
function unclear(why) {
  return { verdict: "unclear", why };
}

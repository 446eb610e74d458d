// One mutant from making it to its verdict: first the tests that are expected to notice it, and if they do not, all tests of its package. Decides only the verdict.

import { suiteOf, testsOf } from "./mutant.mjs";
import { runTests } from "./test-run.mjs";

/**
 * killed: a test went red. survived: none did. unclear: the mutant could not be judged, which is no better.
 * @typedef {{ readonly verdict: "killed", readonly title: string, readonly file: string, readonly expected: boolean }
 *   | { readonly verdict: "survived" } | { readonly verdict: "unclear", readonly why: string }} Verdict
 * @typedef {import("./mutant.mjs").Mutant & { readonly result: Verdict, readonly seconds: number }} Tried
 */

/** @param {import("./workshop.mjs").Workshop} workshop @param {import("./mutant.mjs").Mutant} mutant @returns {Promise<Tried>} */
export async function tryMutant(workshop, mutant) {
  const startedAt = performance.now();
  const result = await workshop.with(mutant, (built) =>
    built.ok ? judged(workshop.folder, mutant) : unclear(`it does not compile, so no test has judged it: ${built.output.trim()}`),
  );
  return { ...mutant, result, seconds: (performance.now() - startedAt) / 1_000 };
}

/** @param {string} folder @param {import("./mutant.mjs").Mutant} mutant @returns {Promise<Verdict>} */
async function judged(folder, mutant) {
  const named = await runTests(folder, testsOf(mutant));
  if (named.kind === "red") return { verdict: "killed", title: named.title, file: named.file, expected: true };
  const all = await runTests(folder, [suiteOf(mutant)]);
  if (all.kind === "red") return { verdict: "killed", title: all.title, file: all.file, expected: false };
  return all.kind === "green" ? { verdict: "survived" } : unclear(all.why);
}

/** @param {string} why @returns {Promise<Verdict>} */
async function unclear(why) {
  return { verdict: "unclear", why };
}

// What a mutant is: one small change that breaks one promise, and how it is made. Pure. Must not be lenient: a text that is there twice, or not at all, means that the
// code has changed, and that somebody has to look whether the mutant still says what it breaks.

/**
 * @typedef {object} Mutant
 * @property {string} name in kebab case: what is wrong now
 * @property {string} promise the id in spec/invariants.md
 * @property {string} file the source that is changed, from the root
 * @property {string} find stands exactly once in the file
 * @property {string} replace stands there instead
 * @property {string} breaks one sentence
 * @property {readonly string[]} tests the test files of its package that are expected to notice, from the package's test folder on
 */

export class DoesNotApply extends Error {}

/** The changed text. @param {Mutant} mutant @param {string} text */
export function mutated({ name, file, find, replace }, text) {
  const times = text.split(find).length - 1;
  if (times !== 1) throw new DoesNotApply(`mutant ${name} no longer applies: its text stands ${times} times in ${file}, not once`);
  return text.split(find).join(replace);
}

/** The suite in which a mutant must be noticed: its package's. @param {Mutant} mutant */
export function suiteOf({ file }) {
  return `${file.split("/").slice(0, 2).join("/")}/test/`;
}

/** The paths of the tests that are expected to notice it. @param {Mutant} mutant */
export function testsOf(mutant) {
  return mutant.tests.map((test) => suiteOf(mutant) + test);
}

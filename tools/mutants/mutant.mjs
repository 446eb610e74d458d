// What a mutant is: one small change that breaks one promise, and how it is applied. A text that
// stands in its file twice, or not at all, is refused: the code has changed, and the mutant may no
// longer break what it says.

/**
 * @typedef {object} Mutant
 * @property {string} name in kebab case: what is wrong now
 * @property {string} promise the id in spec/invariants.md
 * @property {string} file the source that is changed, from the root
 * @property {string} find stands exactly once in the file; line breaks and a trailing comma are the formatter's and do not count
 * @property {string} replace stands there instead
 * @property {string} breaks one sentence
 * @property {readonly string[]} tests the test files of its package that are expected to notice, from the package's test folder on
 */

export class DoesNotApply extends Error {}

/** The changed text. @param {Mutant} mutant @param {string} text */
export function mutated({ name, file, find, replace }, text) {
  const places = [...text.matchAll(patternOf(find))];
  const [place] = places;
  if (place === undefined || places.length > 1) {
    throw new DoesNotApply(`mutant ${name} no longer applies: its text stands ${places.length} times in ${file}, not once`);
  }
  const [found] = place;
  return text.slice(0, place.index) + replace + text.slice(place.index + found.length);
}

/** A word and what joins it to the next: a formatter never breaks a line inside. */
const PIECES = /[\w$]+|"[^"]*"|[^\s\w$]/g;

/**
 * Matches the text however the formatter breaks its lines: white space may stand between any two
 * pieces, has to where the text has it between two words, and a comma may stand before a closing
 * bracket.
 * @param {string} find
 */
function patternOf(find) {
  const pieces = [...find.matchAll(PIECES)];
  const pattern = pieces.map(({ 0: piece, index }, at) => {
    const before = pieces[at - 1];
    if (before === undefined) return escaped(piece);
    const areApart = before.index + before[0].length < index;
    const areWords = /[\w$"]$/.test(before[0]) && /^[\w$"]/.test(piece);
    const gap = areApart && areWords ? "\\s+" : "\\s*";
    return /^[)\]}]$/.test(piece) && before[0] !== "," ? `\\s*,?${gap}${escaped(piece)}` : gap + escaped(piece);
  });
  const [, before, after] = /^(\s?).*?(\s?)$/s.exec(find) ?? [];
  return new RegExp(`${before && "\\s+"}${pattern.join("")}${after && "\\s+?"}`, "g");
}

/** @param {string} piece */
function escaped(piece) {
  return piece.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

/**
 * The suite in which a mutant must be noticed: its package's; for the client the gateway's, because
 * the client is tested on a real gateway; for an example that of the fault runs. @param {Mutant} mutant
 */
export function suiteOf({ file }) {
  const [root, name] = file.split("/");
  if (root === "examples") return "packages/robustness/test/";
  return `packages/${name === "client" ? "gateway" : name}/test/`;
}

/** The paths of the tests that are expected to notice it. @param {Mutant} mutant */
export function testsOf(mutant) {
  return mutant.tests.map((test) => suiteOf(mutant) + test);
}

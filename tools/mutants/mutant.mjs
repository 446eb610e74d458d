// What a mutant is: one small change that breaks one promise, as it stands in the lists beside this
// file, and how it is applied. A text that stands in its file twice, or not at all, is refused: the
// code has changed, and the mutant may no longer break what it says.
import { readdirSync, readFileSync } from "node:fs";
import { Refusal } from "../run.mjs";

/**
 * @typedef {object} Mutant
 * @property {string} name in kebab case: what is wrong now
 * @property {string} promise the id in spec/invariants.md
 * @property {string} breaks one sentence
 * @property {string} file the source that is changed, from the root
 * @property {readonly string[]} tests the test files of its package that are expected to notice, from the package's test folder on
 * @property {string} find stands exactly once in the file; line breaks and a trailing comma are the formatter's and do not count
 * @property {string} replace stands there instead
 */

const ENTRY =
  /^(?<name>\S+) \((?<promise>\S+)\): (?<breaks>.+)\n(?<file>\S+), noticed by (?<tests>.+)\n(?<find>(?:-.*\n)+)(?<replace>(?:\+.*\n)*)$/;

/** The mutants of a list, whose first paragraph says what it is about. @param {string} text @returns {readonly Mutant[]} */
export function mutantsIn(text) {
  // Without the sign and the space before each line.
  const unsigned = (/** @type {string} */ lines) => lines.slice(0, -1).replace(/^[-+] ?/gm, "");
  const [, ...entries] = text.trimEnd().split(/\n{2,}/);
  return entries.map((entry) => {
    const { name, promise, breaks, file, tests, find, replace = "" } = ENTRY.exec(`${entry}\n`)?.groups ?? {};
    if (!name || !promise || !breaks || !file || !tests || !find) throw new Error(`not a mutant:\n${entry}`);
    return { name, promise, breaks, file, tests: tests.split(" and "), find: unsigned(find), replace: unsigned(replace) };
  });
}

/** All there are. A mutant leaves its list only with the code it is about, never because it survives. */
export const catalogue = ["gateway", "page", "client", "cli", "lock"].flatMap((folder) => {
  const lists = readdirSync(new URL(folder, import.meta.url)).sort();
  return lists.flatMap((list) => mutantsIn(readFileSync(new URL(`${folder}/${list}`, import.meta.url), "utf8")));
});

/**
 * Those of these names, or all of them without names; or so many that a seed selects, the same ones
 * for the same seed. @param {{ names: readonly string[], seed?: number | undefined, count?: number }} wanted
 */
export function selected({ names, seed, count = catalogue.length }) {
  const unknown = names.filter((name) => catalogue.every((mutant) => mutant.name !== name));
  if (unknown.length > 0) throw new Refusal(`there is no mutant ${unknown.join(", ")}; npm run mutants -- --list names all of them`);
  if (seed === undefined) return names.length === 0 ? catalogue : catalogue.filter(({ name }) => names.includes(name));
  const random = randomFrom(seed);
  const drawn = catalogue.map((mutant) => ({ mutant, at: random() })).sort((a, b) => a.at - b.at);
  return drawn.slice(0, count).map(({ mutant }) => mutant);
}

/** mulberry32: good enough to shuffle a list, and the same everywhere. @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export class DoesNotApply extends Error {}

/** The changed text. @param {Mutant} mutant @param {string} text */
export function mutated({ name, file, find, replace }, text) {
  const [place, ...others] = text.matchAll(patternOf(find));
  if (place === undefined || others.length > 0) {
    const times = place === undefined ? 0 : others.length + 1;
    throw new DoesNotApply(`mutant ${name} no longer applies: its text stands ${times} times in ${file}, not once`);
  }
  return text.slice(0, place.index) + replace + text.slice(place.index + place[0].length);
}

/** A word and what joins it to the next: a formatter never breaks a line inside. */
const PIECES = /[\w$]+|"[^"]*"|[^\s\w$]/g;

/**
 * Matches the text however the formatter breaks its lines: white space may stand between any two
 * pieces, has to where the text has it between two words, and a comma may stand before a closing
 * bracket. @param {string} find
 */
function patternOf(find) {
  const escaped = (/** @type {string} */ piece) => piece.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
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

/** Of other packages, and tested on a real gateway: the client, the SQL, how Postgres is connected to. */
const ON_A_GATEWAY = /^packages\/(client\/|guard\/src\/(sql\/|database-url))/;

/**
 * The suite in which it must be noticed: its package's, or the gateway's; for an example that of the
 * fault runs. @param {Mutant} mutant
 */
export function suiteOf({ file }) {
  const [root, name] = file.split("/");
  if (root === "examples") return "packages/robustness/test/";
  return `packages/${ON_A_GATEWAY.test(file) ? "gateway" : name}/test/`;
}

/** The paths of the tests that are expected to notice it; unit tests are the package's own. @param {Mutant} mutant */
export function testsOf(mutant) {
  const own = `packages/${mutant.file.split("/")[1]}/test/`;
  return mutant.tests.map((test) => (test.startsWith("unit/") ? own : suiteOf(mutant)) + test);
}

/**
 * So many of each file that still apply when the others of it are applied, and the rest.
 * @param {readonly Mutant[]} mutants @param {number} ofOneFile @param {(file: string) => string} read
 */
export function together(mutants, ofOneFile, read) {
  /** @type {Map<string, { text: string, count: number }>} */
  const files = new Map();
  const now = mutants.filter((mutant) => {
    const { text, count } = files.get(mutant.file) ?? { text: read(mutant.file), count: 0 };
    if (count === ofOneFile) return false;
    try {
      files.set(mutant.file, { text: mutated(mutant, text), count: count + 1 });
      return true;
    } catch (error) {
      if (!(error instanceof DoesNotApply) || count === 0) throw error;
      return false; // Another one has changed its place.
    }
  });
  return { now, later: mutants.filter((mutant) => !now.includes(mutant)) };
}

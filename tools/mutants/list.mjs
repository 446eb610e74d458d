// Reads a list of mutants. Its first paragraph says what the list is about; every other one is a
// mutant: its name, promise and what it breaks, then its file and tests, then the text to find (-)
// and what stands there instead (+).

/** @typedef {import("./mutant.mjs").Mutant} Mutant */

const ENTRY =
  /^(?<name>\S+) \((?<promise>\S+)\): (?<breaks>.+)\n(?<file>\S+), noticed by (?<tests>.+)\n(?<find>(?:-.*\n)+)(?<replace>(?:\+.*\n)*)$/;

/** @param {string} text @returns {readonly Mutant[]} */
export function mutantsIn(text) {
  return text
    .trimEnd()
    .split(/\n{2,}/)
    .slice(1)
    .map(mutantIn);
}

/** @param {string} entry @returns {Mutant} */
function mutantIn(entry) {
  const { name, promise, file, find, replace, breaks, tests } = ENTRY.exec(`${entry}\n`)?.groups ?? {};
  if (!name || !promise || !file || !find || !breaks || !tests) throw new Error(`not a mutant:\n${entry}`);
  return { name, promise, file, find: unsigned(find), replace: unsigned(replace ?? ""), breaks, tests: tests.split(" and ") };
}

/** Without the sign and the space before each line. @param {string} lines */
function unsigned(lines) {
  return lines.slice(0, -1).replace(/^[-+] ?/gm, "");
}
